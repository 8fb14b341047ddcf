// Finds the faster way to the sums of an input's masked gradient: the graph that computes the
// gradient together with its sums (layers/gpu/gradient_sums.h), or the graph without sums followed
// by a pass of our own kernel. Both are run on random numbers, in turn.
#pragma once

#include "engine/device/context.h"
#include "layers/graphs/graph.h"

namespace rk {

struct GradientSumsTiming {
  double graph_ms = 0, kernel_ms = 0;  // both including the gradient itself, medians
  // The larger of two differences: of the graph's gradient from the one computed without sums, as
  // gpu::relative_error(); of the graph's sums from our kernel's over that gradient, relative to
  // the largest sum.
  double error = 0;
  bool agrees = false;  // and repeats give the same bits
};

// Uses the engines that the context's plan table names for `graph`, in fp16, and for
// graph_with_sums(graph); cuDNN must have both. Waits.
GradientSumsTiming time_gradient_sums(const Context& context, const Graph& graph, int repeats);

}  // namespace rk
