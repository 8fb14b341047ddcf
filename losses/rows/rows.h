// Runs the rows of a loss on a batch: each row computes its loss and the gradient of its
// similarities; products turn the latter into the gradient of the embeddings. make_rows
// (losses/rows/make_rows.h) chooses one of three implementations: rows over the cores of the CPU
// (cpu_rows.h), one GPU block a row (gpu_rows.h), or, on the CPU, hardest pairs only, if a row's
// loss depends on nothing else (pair_rows.h). Everything is in the device's memory, including the
// rows' parameters.
#pragma once

#include "kernels/rows/row_batch.h"
#include "losses/frame/loss.h"
#include "losses/products/similarity.h"

#include <cstdint>

namespace rk {

template <class S, class Row> class Rows {
 public:
  using Params = typename Row::Params;
  // `work`: null, or the total work of the rows before each, [rows + 1], so that the CPU's threads
  // get about the same work instead of the same number of rows.
  struct Batch : RowBatch<S> {
    const Params* params = nullptr;
    const std::int64_t* work = nullptr;
  };

  Rows() = default;
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;
  virtual ~Rows() = default;

  // For coupled rows, before run(): writes stats [rows, width].
  virtual void measure(const Context& context, const Batch& batch, S* stats, int width) = 0;
  // Writes the losses, and dLoss/dE [rows, dim] to `grad`.
  virtual void run(const Context& context, const Batch& batch, const LossInput<S>& input,
                   SimilarityMatrix<S>& similarity, S* grad) = 0;
  virtual std::int64_t bytes() const = 0;
};

}  // namespace rk
