#include "losses/cuda/rambo_scores.h"

#include "engine/base/error.h"
#include "losses/cuda/ranking.h"

#include <algorithm>

namespace rk {
namespace {

class DeviceRamboScores final : public DeviceLoss {
 public:
  DeviceRamboScores(const CudaContext& cuda, double lambda, double margin, double beta)
      : cuda_(cuda),
        lambda_(static_cast<float>(lambda)),
        margin_(static_cast<float>(margin)),
        beta_(beta) {}

  void plan(const LossShape& shape) override {
    const std::int64_t all = shape.rows * shape.classes;
    ranking_.plan(all, by_class() && shape.classes > 1);
    lists_ = (by_class() ? 1 : 0) + (overall() ? 1 : 0);
    capacity_ = all;
    host_ = PinnedBuffer(packed_bytes());
    device_ = DeviceBuffer(packed_bytes());
    loss_ = DeviceBuffer::of<double>(1);
    loss_on_host_ = PinnedBuffer(sizeof(double));
    copied_ = false;
  }

  void prepare(const LossInput<float>& batch) override {
    items_ = batch.rows;
    classes_ = batch.classes;
    const std::int64_t all = items_ * classes_;
    expect(all <= capacity_, "[loss] expected at most {} scores as planned, got {}", capacity_,
           all);
    if (copied_) cuda_.synchronize();
    copied_ = true;
    std::copy_n(batch.targets, all, host_.as<std::uint8_t>() + targets_at());
    ranked_ = positives_ = 0;
    auto* own = host_.as<std::uint32_t>();  // by class, then by item
    for (std::int64_t c = 0; c < classes_; ++c) {
      const std::int64_t before = positives_;
      for (std::int64_t i = 0; i < items_; ++i) {
        if (batch.targets[i * classes_ + c] == 0) continue;
        if (by_class()) own[positives_] = static_cast<std::uint32_t>(c * items_ + i);
        ++positives_;
      }
      ranked_ += positives_ > before ? 1 : 0;
    }
    if (overall()) {
      own += by_class() ? positives_ : 0;
      for (std::int64_t i = 0; i < all; ++i) {
        if (batch.targets[i] != 0) *own++ = static_cast<std::uint32_t>(i);
      }
    }
    cuda_.upload(device_.as<std::byte>(), host_.as<std::byte>(),
                 static_cast<std::size_t>(positives_) * static_cast<std::size_t>(lists_) *
                     sizeof(std::uint32_t));
    cuda_.upload(device_.as<std::uint8_t>() + targets_at(), host_.as<std::uint8_t>() + targets_at(),
                 static_cast<std::size_t>(all));
  }

  void launch(const DeviceLossInput& input, const DeviceLossOutput& output) override {
    const std::int64_t all = items_ * classes_;
    auto* loss = loss_.as<double>();
    if (positives_ == 0) {
      cuda_.clear(output.grad, static_cast<std::size_t>(all) * sizeof(float));
      cuda_.clear(loss, sizeof(double));
    } else {
      DeviceRanking::Batch batch{.positives = positives_,
                                 .lambda = lambda_,
                                 .margin = margin_,
                                 .scores = input.scores,
                                 .targets = device_.as<std::uint8_t>() + targets_at(),
                                 .grad = output.grad,
                                 .loss = loss};
      if (overall()) {
        batch.items = all;
        batch.segments = 1;
        batch.own = device_.as<std::uint32_t>() + (by_class() ? positives_ : 0);
        batch.weight = static_cast<float>(beta_);
        batch.share = beta_;
        ranking_.launch(cuda_, batch);
      }
      if (by_class()) {
        batch.items = items_;
        batch.segments = classes_;
        batch.own = device_.as<std::uint32_t>();
        batch.share = (1 - beta_) / static_cast<double>(ranked_);
        batch.weight = static_cast<float>(batch.share);
        batch.accumulate = overall();
        ranking_.launch(cuda_, batch);
      }
    }
  }

  LossOutput<float> result() override {
    cuda_.download(loss_on_host_.as<double>(), loss_.as<double>(), sizeof(double));
    cuda_.synchronize();
    LossOutput<float> output;
    output.loss = *loss_on_host_.as<double>();
    output.valid_queries = by_class() ? ranked_ : std::min<std::int64_t>(ranked_, 1);
    return output;
  }

  int kernels() const override { return lists_ * DeviceRanking::kKernels; }

  std::int64_t bytes() const override {
    return ranking_.bytes() + static_cast<std::int64_t>(device_.bytes() + loss_.bytes());
  }

 private:
  bool by_class() const { return beta_ < 1; }
  bool overall() const { return beta_ > 0; }
  // Lists of positives, then the targets.
  std::size_t targets_at() const {
    return static_cast<std::size_t>(capacity_) * static_cast<std::size_t>(lists_) *
           sizeof(std::uint32_t);
  }
  std::size_t packed_bytes() const { return targets_at() + static_cast<std::size_t>(capacity_); }

  const CudaContext& cuda_;
  float lambda_;
  float margin_;
  double beta_;
  DeviceRanking ranking_;
  std::int64_t capacity_ = 0;
  std::int64_t items_ = 0;
  std::int64_t classes_ = 0;
  std::int64_t positives_ = 0;
  std::int64_t ranked_ = 0;  // classes with a positive
  int lists_ = 0;
  bool copied_ = false;
  PinnedBuffer host_, loss_on_host_;
  DeviceBuffer device_, loss_;
};

}  // namespace

std::unique_ptr<DeviceLoss> make_device_rambo_scores(const CudaContext& cuda, double lambda,
                                                     double margin, double beta) {
  return std::make_unique<DeviceRamboScores>(cuda, lambda, margin, beta);
}

}  // namespace rk
