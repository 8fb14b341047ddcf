#include "losses/cuda/proxy.h"

#include "engine/base/error.h"
#include "engine/device/cuda/buffer.h"
#include "kernels/blocks/head_block.h"
#include "kernels/blocks/proxy_check_block.h"
#include "kernels/cuda/rows.h"
#include "kernels/launch.h"
#include "kernels/rows/finish_rows.h"
#include "losses/frame/proxy_matrix.h"
#include "losses/frame/similarity.h"

#include <algorithm>

namespace rk {
namespace {

// What result() reads.
struct ProxyResult {
  double loss = 0;
  BadProxy bad;
};

class DeviceProxyLoss : public DeviceLoss {
 public:
  DeviceProxyLoss(const CudaContext& cuda, bool classes_by_items)
      : cuda_(cuda), classes_by_items_(classes_by_items) {}

  void plan(const LossShape& shape) final {
    planned_ = shape;
    const std::int64_t rows = classes_by_items_ ? shape.classes : shape.rows;
    const auto columns = static_cast<int>(classes_by_items_ ? shape.rows : shape.classes);
    matrix_ = DeviceBuffer::of<float>(rows * pad(columns));
    cuda_.clear(matrix_.as<float>(), matrix_.bytes());  // rows load what lies behind their columns
    unit_ = DeviceBuffer::of<float>(shape.classes * shape.dim);
    lengths_ = DeviceBuffer::of<double>(shape.classes);
    losses_ = DeviceBuffer::of<float>(rows);
    result_ = DeviceBuffer::of<ProxyResult>(1);
    result_on_host_ = PinnedBuffer(sizeof(ProxyResult));
    plan_proxy_rows(static_cast<int>(rows), columns, &scratch_);
    scratch_memory_ = DeviceBuffer::of<std::byte>(scratch_.blocks * scratch_.global_bytes);
    scratch_.global = scratch_memory_.as<std::byte>();
    host_ = PinnedBuffer(packed_bytes());
    std::fill_n(host_.as<std::byte>(), host_.bytes(), std::byte{0});
    device_ = DeviceBuffer(packed_bytes());
    copied_ = false;
  }

  void prepare(const LossInput<float>& batch) final {
    expect(batch.rows <= planned_.rows && batch.classes <= planned_.classes,
           "[loss] expected at most {} rows and {} classes as planned, got {} and {}",
           planned_.rows, planned_.classes, batch.rows, batch.classes);
    check_proxy_labels(batch.rows, batch.labels, batch.classes);
    if (copied_) cuda_.synchronize();
    copied_ = true;
    items_ = batch.rows;
    classes_ = batch.classes;
    auto* host = host_.as<std::byte>();
    *reinterpret_cast<BatchNumbers*>(host) = {.valid = static_cast<double>(items_),
                                              .value_weight = value_weight()};
    std::copy_n(batch.labels, items_, reinterpret_cast<std::int64_t*>(host + labels_at()));
    // Of the positive part: one share for every class that the batch has.
    auto* weights = reinterpret_cast<float*>(host + weights_at());
    std::fill_n(weights, classes_, 0.0F);
    for (std::int64_t i = 0; i < items_; ++i) weights[batch.labels[i]] = 1;
    const auto present = static_cast<float>(std::count(weights, weights + classes_, 1.0F));
    for (std::int64_t c = 0; c < classes_; ++c) weights[c] = weights[c] > 0 ? 1 / present : 0.0F;
    cuda_.upload(device_.as<std::byte>(), host, packed_bytes());
  }

  void launch(const DeviceLossInput& input, const DeviceLossOutput& output) final {
    const std::int64_t n = items_;
    const std::int64_t c = classes_;
    const std::int64_t dim = input.dim;
    const CudaStream stream = cuda_.stream();
    auto* unit = unit_.as<float>();
    auto* scores = matrix_.as<float>();
    const float* e = input.embeddings;
    const auto classes = static_cast<int>(c);
    const auto width = static_cast<int>(dim);
    // Without a least length: a proxy of length 0 gives NaN, here and in all that follows.
    rk::launch(L2Norm{classes, width, 0, input.proxies, unit, lengths_.as<double>()}, stream);
    auto* result = result_.as<ProxyResult>();
    rk::launch(FindBadProxy{classes, width, kLargestInput<float>, input.proxies,
                            lengths_.as<double>(), &result->bad},
               stream);
    const std::int64_t stride = pad(static_cast<int>(classes_by_items_ ? n : c));
    if (classes_by_items_) {
      cuda_.gemm(Op::kNone, Op::kTranspose, c, n, dim, 1.0F, unit, dim, e, dim, 0.0F, scores,
                 stride);
    } else {
      cuda_.gemm(Op::kNone, Op::kTranspose, n, c, dim, 1.0F, e, dim, unit, dim, 0.0F, scores,
                 stride);
    }
    run_rows(scores, stride, losses_.as<float>(), scratch_);
    float* grad = output.grad;
    float* grad_proxies = output.grad_proxies;
    if (classes_by_items_) {
      cuda_.gemm(Op::kTranspose, Op::kNone, n, dim, c, 1.0F, scores, stride, unit, dim, 0.0F, grad,
                 dim);
      cuda_.gemm(Op::kNone, Op::kNone, c, dim, n, 1.0F, scores, stride, e, dim, 0.0F, grad_proxies,
                 dim);
    } else {
      cuda_.gemm(Op::kNone, Op::kNone, n, dim, c, 1.0F, scores, stride, unit, dim, 0.0F, grad, dim);
      cuda_.gemm(Op::kTranspose, Op::kNone, c, dim, n, 1.0F, scores, stride, e, dim, 0.0F,
                 grad_proxies, dim);
    }
    // Of the first proxy: an embedding that is not finite is in the gradient of all of them.
    rk::launch(SumLosses{.batch = reinterpret_cast<const BatchNumbers*>(device_.as<std::byte>()),
                         .losses = losses_.as<float>(),
                         .rows = static_cast<int>(classes_by_items_ ? c : n),
                         .gradient = grad_proxies,
                         .dim = width,
                         .loss = &result->loss},
               stream);
    rk::launch(L2NormGradient{classes, width, 0, input.proxies, lengths_.as<double>(), grad_proxies,
                              grad_proxies},
               stream);
  }

  LossOutput<float> result() final {
    cuda_.download(result_on_host_.as<ProxyResult>(), result_.as<ProxyResult>(),
                   sizeof(ProxyResult));
    cuda_.synchronize();
    const ProxyResult& result = *result_on_host_.as<ProxyResult>();
    if (result.bad.what == BadProxy::kNotFinite) {
      fail_not_finite("proxies", result.bad.row, kLargestInput<float>);
    }
    if (result.bad.what == BadProxy::kZero) fail_without_direction(result.bad.row);
    LossOutput<float> output;
    output.loss = result.loss;
    output.valid_queries = items_;
    return output;
  }

  // Lengths, what is wrong with them, rows, their sum, the lengths' gradient.
  int kernels() const final { return 5; }

  std::int64_t bytes() const final {
    return static_cast<std::int64_t>(matrix_.bytes() + unit_.bytes() + lengths_.bytes() +
                                     losses_.bytes() + result_.bytes() + scratch_memory_.bytes() +
                                     device_.bytes());
  }

 protected:
  // `scores` become their gradient.
  virtual void run_rows(float* scores, std::int64_t stride, float* losses,
                        const RowScratch& scratch) const = 0;
  virtual double value_weight() const = 0;

  const CudaContext& cuda() const { return cuda_; }
  std::int64_t items() const { return items_; }
  std::int64_t classes() const { return classes_; }
  const std::int64_t* labels() const {
    return reinterpret_cast<const std::int64_t*>(device_.as<std::byte>() + labels_at());
  }
  const float* weights() const {
    return reinterpret_cast<const float*>(device_.as<std::byte>() + weights_at());
  }

 private:
  // One piece: the batch's numbers, labels [N], weights of the classes [C].
  static std::size_t labels_at() { return 64; }
  std::size_t weights_at() const {
    return labels_at() + static_cast<std::size_t>(planned_.rows) * sizeof(std::int64_t);
  }
  std::size_t packed_bytes() const {
    return weights_at() + static_cast<std::size_t>(planned_.classes) * sizeof(float);
  }

  const CudaContext& cuda_;
  bool classes_by_items_;
  LossShape planned_;
  std::int64_t items_ = 0;
  std::int64_t classes_ = 0;
  bool copied_ = false;
  RowScratch scratch_;
  DeviceBuffer matrix_, unit_, lengths_, losses_, result_, scratch_memory_, device_;
  PinnedBuffer host_, result_on_host_;
};

class DeviceNsl final : public DeviceProxyLoss {
 public:
  DeviceNsl(const CudaContext& cuda, float scale) : DeviceProxyLoss(cuda, false), scale_(scale) {}

 private:
  double value_weight() const override { return 1 / static_cast<double>(items()); }
  void run_rows(float* scores, std::int64_t stride, float* losses,
                const RowScratch& scratch) const override {
    softmax_rows(scale_, scores, stride, static_cast<int>(items()), static_cast<int>(classes()),
                 labels(), static_cast<float>(value_weight()), losses, scratch, cuda().stream());
  }

  float scale_;
};

class DeviceProxyAnchor final : public DeviceProxyLoss {
 public:
  DeviceProxyAnchor(const CudaContext& cuda, const ProxyAnchorRow<float>::Params& params)
      : DeviceProxyLoss(cuda, true), params_(params) {}

 private:
  double value_weight() const override { return 1; }
  void run_rows(float* scores, std::int64_t stride, float* losses,
                const RowScratch& scratch) const override {
    proxy_anchor_rows(params_, scores, stride, static_cast<int>(classes()),
                      static_cast<int>(items()), labels(), weights(),
                      1 / static_cast<float>(classes()), losses, scratch, cuda().stream());
  }

  ProxyAnchorRow<float>::Params params_;
};

}  // namespace

std::unique_ptr<DeviceLoss> make_device_nsl(const CudaContext& cuda, float scale) {
  return std::make_unique<DeviceNsl>(cuda, scale);
}

std::unique_ptr<DeviceLoss> make_device_proxy_anchor(const CudaContext& cuda,
                                                     const ProxyAnchorRow<float>::Params& params) {
  return std::make_unique<DeviceProxyAnchor>(cuda, params);
}

}  // namespace rk
