// bench loss: value and gradient of a loss on made-up unit embeddings, beside the time of its two
// matrix products alone and of the least its rows can take:
//   floor = GEMMs + sigmoids / (rate of a sigmoid loop over cache-resident data)
//   or, for losses without sigmoids,
//   floor = GEMMs + bytes of the similarity matrix read and written / (rate of a copy)
// all measured in the same run. JSON keys: design of the programs (total_ms gemm_ms rows_ms
// floor_ms share peak_bytes); rows_ms is total less GEMMs. Besides: sigmoids of one run (0: none
// worth counting), sigmoids_per_second of the row kernels' loop and scalar_sigmoids_per_second of
// the C library's, all threads together: 8 times and more apart, the loop is vectorised.
#pragma once

#include "tools/cli.h"

#include <memory>

namespace rk {

std::unique_ptr<Command> make_bench_loss();

}  // namespace rk
