#include "losses/hosted_loss.h"

#include "engine/device_buffer.h"
#include "losses/device_loss.h"
#include "losses/similarity.h"

#include <algorithm>

namespace rk {
namespace {

class HostedLoss final : public Loss<float> {
 public:
  HostedLoss(int device, const LossSpec& spec)
      : cuda_(device), loss_(make_device_loss(cuda_, spec)) {}

  void plan(const Context&, const LossShape& shape) override {
    loss_->plan(shape);
    const std::int64_t rows = shape.rows * shape.dim;
    const std::int64_t memory = shape.memory * shape.dim;
    staged_ = PinnedBuffer(static_cast<std::size_t>(rows + memory) * sizeof(float));
    embeddings_ = DeviceBuffer::of<float>(rows + memory);
    grad_ = DeviceBuffer::of<float>(rows);
  }

  void run(const Context& context, const LossInput<float>& input,
           LossOutput<float>& output) override {
    check_finite(context, input);
    loss_->prepare(input);
    const std::int64_t rows = input.rows * input.dim;
    const std::int64_t memory = input.memory * input.dim;
    auto* staged = staged_.as<float>();
    std::copy_n(input.embeddings, rows, staged);
    if (memory > 0) std::copy_n(input.memory_embeddings, memory, staged + rows);
    auto* embeddings = embeddings_.as<float>();
    cuda_.upload(embeddings, staged, static_cast<std::size_t>(rows + memory) * sizeof(float));
    loss_->launch({.dim = input.dim, .embeddings = embeddings, .memory = embeddings + rows},
                  {.grad = grad_.as<float>()});
    cuda_.download(staged, grad_.as<float>(), static_cast<std::size_t>(rows) * sizeof(float));
    const LossOutput<float> result = loss_->result();
    output.loss = result.loss;
    output.valid_queries = result.valid_queries;
    std::copy_n(staged, rows, output.grad);
  }

  std::int64_t bytes() const override {
    return loss_->bytes() + static_cast<std::int64_t>(embeddings_.bytes() + grad_.bytes());
  }

 private:
  CudaContext cuda_;
  std::unique_ptr<DeviceLoss> loss_;
  PinnedBuffer staged_;
  DeviceBuffer embeddings_, grad_;
};

}  // namespace

std::unique_ptr<Loss<float>> make_hosted_loss(int device, const LossSpec& spec) {
  return std::make_unique<HostedLoss>(device, spec);
}

}  // namespace rk
