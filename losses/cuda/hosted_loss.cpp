#include "losses/cuda/hosted_loss.h"

#include "engine/device/cuda/buffer.h"
#include "losses/cuda/loss.h"
#include "losses/frame/similarity.h"

#include <algorithm>

namespace rk {
namespace {

class HostedLoss final : public Loss<float> {
 public:
  HostedLoss(int device, const LossSpec& spec)
      : cuda_(device), kind_(spec.entry->kind), loss_(make_device_loss(cuda_, spec)) {}

  void plan(const Context&, const LossShape& shape) override {
    loss_->plan(shape);
    const std::int64_t inputs = kind_ == LossKind::kScores
                                    ? shape.rows * shape.classes
                                    : (shape.rows + shape.memory) * shape.dim;
    const std::int64_t proxies = kind_ == LossKind::kProxies ? shape.classes * shape.dim : 0;
    const std::int64_t total = inputs + proxies;
    staged_ = PinnedBuffer(static_cast<std::size_t>(total) * sizeof(float));
    inputs_ = DeviceBuffer::of<float>(total);
    grads_ = DeviceBuffer::of<float>(total);
  }

  void run(const Context& context, const LossInput<float>& input,
           LossOutput<float>& output) override {
    check_finite(context, input);
    loss_->prepare(input);
    const bool on_scores = kind_ == LossKind::kScores;
    const std::int64_t rows = input.rows * (on_scores ? input.classes : input.dim);
    const std::int64_t memory = on_scores ? 0 : input.memory * input.dim;
    const std::int64_t proxies = kind_ == LossKind::kProxies ? input.classes * input.dim : 0;
    auto* staged = staged_.as<float>();
    std::copy_n(on_scores ? input.scores : input.embeddings, rows, staged);
    if (memory > 0) std::copy_n(input.memory_embeddings, memory, staged + rows);
    if (proxies > 0) std::copy_n(input.proxies, proxies, staged + rows + memory);
    auto* inputs = inputs_.as<float>();
    auto* grads = grads_.as<float>();
    cuda_.upload(inputs, staged, bytes_of(rows + memory + proxies));
    loss_->launch({.dim = input.dim,
                   .embeddings = inputs,
                   .memory = inputs + rows,
                   .proxies = inputs + rows + memory,
                   .scores = inputs},
                  {.grad = grads, .grad_proxies = grads + rows});
    cuda_.download(staged, grads, bytes_of(rows + proxies));
    const LossOutput<float> result = loss_->result();
    output.loss = result.loss;
    output.valid_queries = result.valid_queries;
    std::copy_n(staged, rows, output.grad);
    if (proxies > 0) std::copy_n(staged + rows, proxies, output.grad_proxies);
  }

  std::int64_t bytes() const override {
    return loss_->bytes() + static_cast<std::int64_t>(inputs_.bytes() + grads_.bytes());
  }

 private:
  static std::size_t bytes_of(std::int64_t floats) {
    return static_cast<std::size_t>(floats) * sizeof(float);
  }

  CudaContext cuda_;
  LossKind kind_;
  std::unique_ptr<DeviceLoss> loss_;
  PinnedBuffer staged_;
  DeviceBuffer inputs_, grads_;
};

}  // namespace

std::unique_ptr<Loss<float>> make_hosted_loss(int device, const LossSpec& spec) {
  return std::make_unique<HostedLoss>(device, spec);
}

}  // namespace rk
