// What the rows of a loss do with a batch: each its loss and, in place of its similarities, their
// gradient; then the products that make of these the gradient of the embeddings. One of three
// bodies, chosen once by make_rows (losses/rows/make_rows.h): over the cores of the CPU
// (cpu_rows.h), a block of a GPU each (gpu_rows.h), or, where a row depends on its hardest pair
// alone, by these pairs (pair_rows.h). Everything lies in the device's memory, the rows' parameters
// too.
#pragma once

#include "kernels/rows/row_batch.h"
#include "losses/frame/loss.h"
#include "losses/products/similarity.h"

#include <cstdint>

namespace rk {

// Whether rows are coupled by sums over all of them (kernels/rows/batch_numbers.h).
template <class Row>
inline constexpr bool kMeasuredRow = requires(const typename Row::Params& params) {
  Row::stats(params);
};

template <class S, class Row> class Rows {
 public:
  using Params = typename Row::Params;
  // `work`: null, or what the rows before each cost, [rows + 1], so that the CPU's threads get rows
  // of about the same work instead of the same number.
  struct Batch : RowBatch<S> {
    const Params* params = nullptr;
    const std::int64_t* work = nullptr;
  };

  Rows() = default;
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;
  virtual ~Rows() = default;

  // Of rows that are coupled, before run(): stats [rows, width].
  virtual void measure(const Context& context, const Batch& batch, S* stats, int width) = 0;
  // Losses, and dLoss/dE [rows, dim] to `grad`.
  virtual void run(const Context& context, const Batch& batch, const LossInput<S>& input,
                   SimilarityMatrix<S>& similarity, S* grad) = 0;
  virtual std::int64_t bytes() const = 0;
};

}  // namespace rk
