// Which graphs were built since the start, or since they were forgotten.
#pragma once

#include "layers/graphs/graph.h"

#include <set>
#include <vector>

namespace rk::host_gpu {

const std::vector<GraphSpec>& graphs_built();
void forget_graphs();

// From now on graphs of these kinds are refused, as a card may that lacks an engine; {}: none.
void refuse_graphs(std::set<GraphKind> kinds);

}  // namespace rk::host_gpu
