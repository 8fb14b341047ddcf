// Which graphs were built since the start, or since they were forgotten.
#pragma once

#include "layers/graphs/graph.h"

#include <functional>
#include <vector>

namespace rk::host_gpu {

const std::vector<Graph>& graphs_built();
void forget_graphs();

// From now on graphs for which this holds are refused, as by a card that lacks an engine; null:
// none.
void refuse_graphs(std::function<bool(const Graph&)> graphs);

}  // namespace rk::host_gpu
