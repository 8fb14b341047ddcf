// Which is the faster way to the sums of an input's masked gradient: the graph that computes the
// gradient with the sums beside it (layers/gpu/gradient_sums.h), or without, and a pass of our own
// kernel over what it wrote. Both are run on random numbers, in turn.
#pragma once

#include "engine/device/context.h"
#include "layers/graphs/graph.h"

namespace rk::gpu {

struct GradientSumsTiming {
  double graph_ms = 0, kernel_ms = 0;  // each with the gradient itself, medians
  // Of the graph's gradient from that without sums, and of its sums from our kernel's over it: the
  // largest difference, of the largest value.
  double error = 0;
  bool agrees = false;  // and gives the same bits again
};

// By the engines of the context's plan table, of `graph`, in fp16, and of
// graph_with_sums(graph), both of which the library must have. Waits.
GradientSumsTiming time_gradient_sums(const Context& context, const Graph& graph, int repeats);

}  // namespace rk::gpu
