// Rows on a GPU, one block per row (kernels/cuda/rows.h).
#pragma once

#include "kernels/cuda/rows.h"
#include "losses/rows/rows.h"

#include <algorithm>
#include <cstdint>

namespace rk {

// The scratch of all rows that run at once, for rows that do not fit into shared memory.
class BlockScratch {
 public:
  BlockScratch(const Context& context, const RowScratch& planned) : scratch_(planned) {
    scratch_.blocks = std::max(scratch_.blocks, 1);  // also for no rows: CUDA rejects empty grids
    memory_ = context.allocate<std::byte>(scratch_.blocks * scratch_.global_bytes);
    scratch_.global = memory_.data();
  }
  const RowScratch& rows() const { return scratch_; }
  std::int64_t bytes() const { return static_cast<std::int64_t>(memory_.bytes()); }

 private:
  RowScratch scratch_;
  Memory memory_;
};

template <class Row> class GpuRows final : public Rows<float, Row> {
 public:
  using typename Rows<float, Row>::Batch;
  using typename Rows<float, Row>::Params;

  GpuRows(const Context& context, const Params& params, const LossShape& shape)
      : scratch_(context, planned(params, shape)) {}

  void measure(const Context& context, const Batch& batch, float* stats, int width) override {
    GalleryRows<Row>::measure(batch, batch.params, stats, width, scratch_.rows(), context.stream());
  }

  void run(const Context& context, const Batch& batch, const LossInput<float>& input,
           SimilarityMatrix<float>& similarity, float* grad) override {
    GalleryRows<Row>::run(batch, batch.params, scratch_.rows(), context.stream());
    // The number of non-zeros is not known to the host, so all numbers count.
    similarity.backward(context, input, std::int64_t{batch.rows} * batch.columns, grad);
  }

  std::int64_t bytes() const override { return scratch_.bytes(); }

 private:
  static RowScratch planned(const Params& params, const LossShape& shape) {
    RowScratch scratch;
    GalleryRows<Row>::plan(params, static_cast<int>(shape.rows),
                           static_cast<int>(shape.rows + shape.memory), &scratch);
    return scratch;
  }

  BlockScratch scratch_;
};

}  // namespace rk
