// `bench step --tune FILE`: measures what a network's training step can be made of on this GPU and
// writes the fastest to a file for --plans (layers/graphs/plans.h). First every engine of every
// graph by itself; then, with the batch's statistics, the algorithms of batch normalisation
// (layers/gpu/batchnorm.h) behind each convolution; with frozen ones, whether graphs add gradients
// up (layers/gpu/gradient_sums_timing.h). What disagrees with the first engine, or with our own
// kernels, is not taken. What moves most bytes in a step comes first. The file is written anew
// after every result: one that was cut off holds what was known by then, and the next tuning goes
// on from there: what the file has decided is not timed again.
#pragma once

#include "training/trainer.h"

#include <functional>
#include <string>

namespace rk {

struct TunedGraph {
  std::string graph, engine;    // engine: also "own kernels"
  double ms = 0, first_ms = 0;  // of what was taken, of what would be without a file
  std::string timed;            // what else was in the time
};

using TuningReport = std::function<void(const TunedGraph&)>;  // called as soon as one is known

// repeats: of each timing; medians are compared. seconds: after them nothing further is begun.
// Returns how many results are then still unknown.
int tune_plans(const Context& context, const TrainerOptions& options, int repeats, double seconds,
               const std::string& path, const TuningReport& report);

}  // namespace rk
