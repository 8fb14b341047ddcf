// A graph (layers/graphs/graph.h) built by cuDNN for a GPU that is only described: it checks shapes
// and types, asks the library's heuristics and finalises a plan. That shows what the library
// accepts, even on machines without a GPU; nothing is run.
#pragma once

#include "layers/graphs/graph.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace rk {

// A GPU as cuDNN describes it: its device properties in JSON, as the library writes them, which
// hold the compute capability, the multiprocessors and their memories.
struct GpuDescription {
  std::string json;
  int compute_capability = 0;  // 80, 90
};

// Describes this machine's GPU number `device`; throws DeviceError if cuDNN cannot.
GpuDescription describe_gpu(int device, int compute_capability);

// How far a plan was built. Some engines' kernels are compiled when the plan is built, in about a
// second, and then loaded, which needs a driver.
enum class PlanState : std::uint8_t {
  kFinal,     // ready to run
  kCompiled,  // compiled; there was no driver to load it
  kAccepted,  // an engine supports it; nothing was compiled, as asked for
};

// Return the engines that support a graph, in the heuristics' order: "eng62_k2=4", with " compiled"
// behind those that would have to be compiled. For a described GPU, and for the one at hand, which
// may have more.
std::vector<std::string> engines_of(const Graph& graph, const GpuDescription& gpu);
std::vector<std::string> engines_at_hand(const Graph& graph);

class DescribedGraph {
 public:
  // Without `compile`, stops at kAccepted if a plan would have to be compiled. Throws DeviceError
  // if cuDNN cannot be loaded or no engine supports the graph: the message names the graph and what
  // was refused.
  DescribedGraph(const Graph& graph, const GpuDescription& gpu, bool compile);
  ~DescribedGraph();

  PlanState state() const;
  const std::string& engine() const;  // its name in the library, with settings; empty at kAccepted
  std::size_t workspace_bytes() const;  // device memory a run takes beside the tensors, at kFinal
  // How many addresses a run adds to the places it is given. They would be the frontend's own, and
  // gone at the next run: a replayed step needs 0.
  std::size_t places_added_by_run() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rk
