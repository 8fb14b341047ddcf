// bench loss: value and gradient of a loss on synthetic unit embeddings, beside the time of only
// its similarity products (forward and backward) and a lower bound ("floor") of the whole:
//   floor = useful products + sigmoids / (rate of a sigmoid loop over cache-resident data)
//   or, for losses without sigmoids,
//   floor = useful products + bytes of the similarity matrix / (rate of a copy of that size)
// all measured in the same run. Useful products: half of S = E E^T, and the part of the gradient
// that is not 0 by definition, at the rate of one plain GEMM of the loss's size (on a CPU the
// gradient of a loss of hardest pairs has two numbers a row, so it counts as rows read and written
// at the rate of a copy). JSON keys: total_ms gemm_ms rows_ms floor_ms share peak_bytes; gemm_ms is
// the time of the similarity products as the loss computes them, on a GPU as two GEMMs; rows_ms =
// total_ms - gemm_ms. Also gemm_flops_per_second of the plain GEMM, sigmoids of one run (0: none
// worth counting), and, for all threads together, sigmoids_per_second of the row kernels' loop and
// scalar_sigmoids_per_second of the C library: if they differ 8-fold or more, the loop is
// vectorised.
#pragma once

#include "tools/cli/cli.h"

#include <memory>

namespace rk {

std::unique_ptr<Command> make_bench_loss();

}  // namespace rk
