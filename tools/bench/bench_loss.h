// bench loss: value and gradient of a loss on made-up unit embeddings, beside the time of its way
// to the similarities and back alone and of the least the whole can take:
//   floor = useful products + sigmoids / (rate of a sigmoid loop over cache-resident data)
//   or, for losses without sigmoids,
//   floor = useful products + bytes of the similarity matrix / (rate of a copy of that size)
// all measured in the same run. Useful: half of S = E E^T, and of the gradient what is not 0 by
// definition (on a CPU a loss of hardest pairs has two numbers a row: rows read and written at the
// rate of a copy), at the rate of one plain GEMM of the loss's size. JSON keys: design of the
// programs (total_ms gemm_ms rows_ms floor_ms share peak_bytes); gemm_ms is the way to the
// similarities and back as the loss takes it, on a GPU as two GEMMs; rows_ms is total less that.
// Besides: gemm_flops_per_second of the plain GEMM, sigmoids of one run (0: none worth counting),
// sigmoids_per_second of the row kernels' loop and scalar_sigmoids_per_second of the C library's,
// all threads together: 8 times and more apart, the loop is vectorised.
#pragma once

#include "tools/cli/cli.h"

#include <memory>

namespace rk {

std::unique_ptr<Command> make_bench_loss();

}  // namespace rk
