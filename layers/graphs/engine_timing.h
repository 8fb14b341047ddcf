// Times the engines that cuDNN has for a graph.
#pragma once

#include "engine/device/context.h"
#include "layers/graphs/graph.h"
#include "layers/graphs/plans.h"

namespace rk {

// Times a graph's first ready-made engines (compiled ones, if there are none) on the context's GPU,
// `repeats` times each in turn, on random numbers, and takes the fastest of those that agree with
// the first within rounding.
GpuPlans::Timing time_engines(const Context& context, const Graph& graph, int repeats);

}  // namespace rk
