// bench eval: all metrics of a made-up test set, beside what its products take alone.
//
// Timed in turn, so that a busy machine slows all alike: everything that `eval --confidence
// --per-class --curves` computes; the same tiles (gathered, packed and multiplied the same way)
// with nothing done to the scores, on a GPU the products of all tiles alone; and on the CPU the
// whole matrix of scores by oneDNN's own product, as a program would ask it for, in blocks.
//   share = products alone / total, of_matrix = total / whole matrix: medians over the repeats.
// JSON keys: total_ms gemm_ms share matrix_ms of_matrix peak_bytes, on a GPU device_name.
#pragma once

#include "tools/cli/cli.h"

#include <memory>

namespace rk {

std::unique_ptr<Command> make_bench_eval();

}  // namespace rk
