// `bench step --tune FILE`: times the alternatives for the parts of a network's training step on
// this GPU and writes the fastest to a file for --plans (layers/graphs/plans.h): the engines of
// every graph; with batch statistics also the algorithms of batch normalisation
// (layers/gpu/batchnorm.h) after each convolution, which are decided first; with frozen statistics
// also whether graphs accumulate gradients (gradient_sums_timing.h). A result that disagrees with
// the first engine or with our own kernels is not taken. Parts that move most bytes in a step come
// first. The file is rewritten after every result, so that an interrupted tuning keeps its results;
// the next tuning continues from there and does not time again what the file has decided.
#pragma once

#include "training/trainer.h"

#include <functional>
#include <string>

namespace rk {

struct TunedGraph {
  std::string graph, engine;    // engine: also "own kernels"
  double ms = 0, first_ms = 0;  // of the chosen way; of the way without a file
  std::string timed;            // what else the time includes
};

using TuningReport = std::function<void(const TunedGraph&)>;  // called for each result

// repeats: of each timing; medians are compared. seconds: after these no further part is begun.
// Returns the number of parts still undecided.
int tune_plans(const Context& context, const TrainerOptions& options, int repeats, double seconds,
               const std::string& path, const TuningReport& report);

}  // namespace rk
