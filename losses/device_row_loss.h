// RowLoss (losses/row_loss.h) on a GPU, for losses whose rows are not coupled by sums over all of
// them: two products, a block a row, and the gradient's transpose in between.
#pragma once

#include "engine/dispatch.h"
#include "kernels/symmetric_cuda.h"
#include "losses/device_batch.h"
#include "losses/device_loss.h"
#include "losses/registry.h"
#include "losses/row_loss.h"

#include <span>
#include <type_traits>

namespace rk {

template <class Formula> class DeviceRowLoss final : public DeviceLoss {
 public:
  using Params = typename Formula::Row::Params;
  static_assert(std::is_trivially_copyable_v<Params>);

  DeviceRowLoss(const CudaContext& cuda, const Formula& formula) : cuda_(cuda), formula_(formula) {}

  void plan(const LossShape& shape) override {
    index_.plan(shape);
    batch_.plan(shape, sizeof(Params));
    const std::int64_t columns = shape.rows + shape.memory;
    stride_ = pad(static_cast<int>(columns));
    matrix_ = DeviceBuffer::of<float>(shape.rows * stride_);
    losses_ = DeviceBuffer::of<float>(shape.rows);
    total_ = DeviceBuffer::of<double>(1);
    total_on_host_ = PinnedBuffer(sizeof(double));
    GalleryRows<typename Formula::Row>::plan(formula_.params, static_cast<int>(shape.rows),
                                             static_cast<int>(columns), &scratch_);
    scratch_memory_ = DeviceBuffer::of<std::byte>(scratch_.blocks * scratch_.global_bytes);
    scratch_.global = scratch_memory_.as<std::byte>();
  }

  void prepare(const LossInput<float>& batch) override {
    index_.build(batch);
    if constexpr (requires { formula_.begin(index_); }) formula_.begin(index_);
    valid_ = formula_.valid(index_);
    const float weight = valid_ > 0 ? formula_.grad_weight(index_) : 0.0F;
    batch_.pack(cuda_, index_, weight, std::as_bytes(std::span(&formula_.params, 1)),
                [&](int row) { return formula_.counts(index_, row); });
  }

  void launch(std::int64_t dim, const float* embeddings, const float* memory,
              float* grad) override {
    RowBatch rows = batch_.rows();
    rows.scores = matrix_.as<float>();
    rows.stride = stride_;
    rows.losses = losses_.as<float>();
    const std::int64_t n = rows.rows;
    const std::int64_t m = rows.columns - n;
    float* scores = rows.scores;
    cuda_.product_abt(n, n, dim, embeddings, dim, embeddings, dim, scores, stride_);
    cuda_.product_abt(n, m, dim, embeddings, dim, memory, dim, scores + n, stride_);
    GalleryRows<typename Formula::Row>::run(rows, static_cast<const Params*>(batch_.params()),
                                            scratch_, cuda_.stream());
    column_sums(rows.losses, rows.rows, 1, total_.as<double>(), cuda_.stream());
    add_transpose(scores, stride_, rows.rows, cuda_.stream());
    cuda_.product_ab(n, dim, n, scores, stride_, embeddings, dim, 0.0F, grad, dim);
    if (m > 0) {
      cuda_.product_ab(n, dim, m, scores + n, stride_, memory, dim, 1.0F, grad, dim);
    }
    cuda_.download(total_on_host_.as<double>(), total_.as<double>(), sizeof(double));
  }

  LossOutput<float> result() override {
    cuda_.synchronize();
    LossOutput<float> output;
    output.valid_queries = valid_;
    if (valid_ > 0) output.loss = *total_on_host_.as<double>() * formula_.value_weight(index_);
    return output;
  }

  std::int64_t bytes() const override {
    return batch_.bytes() + static_cast<std::int64_t>(matrix_.bytes() + losses_.bytes() +
                                                      total_.bytes() + scratch_memory_.bytes());
  }

 private:
  const CudaContext& cuda_;
  Formula formula_;
  BatchIndex index_;
  DeviceBatch batch_;
  std::int64_t stride_ = 0;
  std::int64_t valid_ = 0;
  RowScratch scratch_;
  DeviceBuffer matrix_, losses_, total_, scratch_memory_;
  PinnedBuffer total_on_host_;
};

// For a registry entry: null in a build without CUDA.
template <auto kFormula> constexpr DeviceLossMaker* device_row_loss() {
  if constexpr (kHasCuda) {
    return [](const CudaContext& cuda, const LossValues& values) -> std::unique_ptr<DeviceLoss> {
      const auto formula = kFormula(values);
      return std::make_unique<DeviceRowLoss<std::remove_const_t<decltype(formula)>>>(cuda, formula);
    };
  } else {
    return nullptr;
  }
}

}  // namespace rk
