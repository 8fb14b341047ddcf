// Which graphs were built since the start, or since forget_graphs().
#pragma once

#include "layers/graphs/graph.h"

#include <functional>
#include <vector>

namespace rk::host_gpu {

const std::vector<Graph>& graphs_built();
void forget_graphs();

// From now on refuses the graphs for which `graphs` is true, as a GPU that lacks an engine does;
// null: refuses none.
void refuse_graphs(std::function<bool(const Graph&)> graphs);

}  // namespace rk::host_gpu
