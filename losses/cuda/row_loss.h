// RowLoss (losses/frame/row_loss.h) on a GPU: two products, a block a row (two where rows are
// coupled by sums over all of them), and the gradient's transpose in between. The host takes no
// part.
#pragma once

#include "engine/device/dispatch.h"
#include "kernels/cuda/symmetric.h"
#include "losses/cuda/batch.h"
#include "losses/cuda/similarity.h"
#include "losses/cuda/totals.h"
#include "losses/frame/row_loss.h"
#include "losses/frame/entry.h"

#include <span>
#include <type_traits>

namespace rk {

template <class Formula> class DeviceRowLoss final : public DeviceLoss {
 public:
  using Row = typename Formula::Row;
  using Params = typename Row::Params;
  static_assert(std::is_trivially_copyable_v<Params>);

  DeviceRowLoss(const CudaContext& cuda, const Formula& formula) : cuda_(cuda), formula_(formula) {}

  void plan(const LossShape& shape) override {
    index_.plan(shape);
    batch_.plan(shape, sizeof(Params));
    const std::int64_t columns = shape.rows + shape.memory;
    stride_ = pad(static_cast<int>(columns));
    matrix_ = DeviceBuffer::of<float>(shape.rows * stride_);
    // Rows load what lies behind their columns, though nothing comes of it.
    cuda_.clear(matrix_.as<float>(), matrix_.bytes());
    losses_ = DeviceBuffer::of<float>(shape.rows);
    loss_ = DeviceBuffer::of<double>(1);
    loss_on_host_ = PinnedBuffer(sizeof(double));
    if constexpr (requires { formula_.plan(shape); }) formula_.plan(shape);
    totals_.plan(shape, formula_);
    GalleryRows<Row>::plan(formula_.params, static_cast<int>(shape.rows), static_cast<int>(columns),
                           &scratch_);
    scratch_memory_ = DeviceBuffer::of<std::byte>(scratch_.blocks * scratch_.global_bytes);
    scratch_.global = scratch_memory_.as<std::byte>();
  }

  void prepare(const LossInput<float>& batch) override {
    index_.build(batch);
    if constexpr (requires { formula_.begin(index_); }) formula_.begin(index_);
    valid_ = formula_.valid(index_);
    const float weight = valid_ > 0 ? formula_.grad_weight(index_) : 0.0F;
    batch_.pack(cuda_, index_, weight, batch_numbers(formula_, index_),
                std::as_bytes(std::span(&formula_.params, 1)),
                [&](int row) { return valid_ > 0 && formula_.counts(index_, row); });
  }

  void launch(const DeviceLossInput& input, const DeviceLossOutput& output) override {
    RowBatch rows = batch_.rows();
    rows.scores = matrix_.as<float>();
    rows.stride = stride_;
    rows.losses = losses_.as<float>();
    auto* params = static_cast<Params*>(batch_.params());
    const CudaStream stream = cuda_.stream();
    const DeviceSimilarity similarity{rows.rows, rows.columns, rows.scores, stride_};
    similarity.forward(cuda_, input);
    totals_.launch(cuda_, rows, batch_.numbers(), params, scratch_);
    GalleryRows<Row>::run(rows, params, scratch_, stream);
    add_transpose(rows.scores, stride_, rows.rows, stream);
    similarity.backward(cuda_, input, output.grad);
    // Of the first item: an embedding that is not finite is in the gradient of all of them.
    rk::launch(SumLosses{.batch = batch_.numbers(),
                         .losses = rows.losses,
                         .rows = rows.rows,
                         .part = totals_.part(),
                         .gradient = output.grad,
                         .dim = static_cast<int>(input.dim),
                         .loss = loss_.as<double>()},
               stream);
  }

  LossOutput<float> result() override {
    cuda_.download(loss_on_host_.as<double>(), loss_.as<double>(), sizeof(double));
    cuda_.synchronize();
    LossOutput<float> output;
    output.valid_queries = valid_;
    output.loss = *loss_on_host_.as<double>();
    return output;
  }

  // The rows, the transpose, the sum of the rows.
  int kernels() const override { return 3 + DeviceTotals<Row>::kKernels; }

  std::int64_t bytes() const override {
    return batch_.bytes() +
           static_cast<std::int64_t>(matrix_.bytes() + losses_.bytes() + loss_.bytes() +
                                     totals_.bytes() + scratch_memory_.bytes());
  }

 private:
  const CudaContext& cuda_;
  Formula formula_;
  BatchIndex index_;
  DeviceBatch batch_;
  std::int64_t stride_ = 0;
  std::int64_t valid_ = 0;
  RowScratch scratch_;
  DeviceTotals<Row> totals_;
  DeviceBuffer matrix_, losses_, loss_, scratch_memory_;
  PinnedBuffer loss_on_host_;
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
