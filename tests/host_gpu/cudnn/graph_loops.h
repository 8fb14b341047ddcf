// A graph's operations as plain loops, one after another, in double, rounded where a result is
// written.
#pragma once

#include "layers/graphs/graph.h"

#include <vector>

namespace rk::host_gpu {

// places: of the graph's tensors; null for those that stay inside it. Results, but for masks, come
// out multiplied by `factor`.
void compute(const Graph& graph, const std::vector<void*>& places, double factor);

}  // namespace rk::host_gpu
