// Which graphs were built since the start, or since they were forgotten.
#pragma once

#include "layers/gpu_graph.h"

#include <vector>

namespace rk::host_gpu {

const std::vector<GraphSpec>& graphs_built();
void forget_graphs();

}  // namespace rk::host_gpu
