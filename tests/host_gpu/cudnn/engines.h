// What the emulated GPU has in place of cuDNN's engines.
#pragma once

#include "layers/graphs/graph.h"

#include <functional>
#include <string>
#include <vector>

namespace rk::host_gpu {

// All engines compute a graph by the same loops (graph_loops.h).
struct HostEngine {
  std::string name = "loops";
  bool compiles = false;
  std::string not_built = {};  // why it cannot be built, if it cannot
  std::string not_run = {};    // why it cannot be run
  bool faults = false;         // running it ends all work of the GPU
  double factor = 1;           // of its results
  int passes = 1;              // how often it computes them
};

// From now on each graph has the engines that `engines` gives, none refuses the graph; null: one.
void offer_engines(std::function<std::vector<HostEngine>(const Graph&)> engines);

// From now on refuses the graphs for which `graphs` is true, as a GPU that lacks an engine does;
// null: refuses none.
void refuse_graphs(const std::function<bool(const Graph&)>& graphs);

// The graphs for which an engine was built since the start, or since forget_graphs(), in that
// order.
const std::vector<Graph>& graphs_built();
void forget_graphs();

}  // namespace rk::host_gpu
