// bench eval: all metrics of a synthetic test set, beside the time of only its products.
//
// Timed in turn, so that a busy machine slows all alike: everything that `eval --confidence
// --per-class --curves` computes; the same tiles (gathered, packed and multiplied the same way)
// without processing the scores, on a GPU only the products of all tiles; and on the CPU the whole
// matrix of scores in blocks, by plain calls of oneDNN's product.
//   share = products alone / total, of_matrix = total / whole matrix: medians over the repeats.
// docs/metrics.md lists its JSON.
#pragma once

#include "tools/cli/cli.h"

#include <memory>

namespace rk {

std::unique_ptr<Command> make_bench_eval();

}  // namespace rk
