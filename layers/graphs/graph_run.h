// Runs a graph (gpu_graph.h) on a context's GPU. The plan of a graph is built once for a context,
// however many nodes run it: the engine that the context's plan table (gpu_plans.h) names, else the
// first that cuDNN's heuristics offer, so that a run that is resumed computes the same bits.
#pragma once

#include "engine/device/context.h"
#include "layers/graphs/graph.h"
#include "layers/graphs/plans.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rk {

class GpuGraph {
 public:
  struct Place {
    GraphRole role;
    const void* data;  // written where tensors_of() says so
  };

  GpuGraph();  // runs nothing
  // DeviceError where cuDNN is missing or refuses the graph.
  GpuGraph(const Context& context, const GraphSpec& spec);
  // Whether cuDNN has it for this GPU; what was built to find out is kept.
  static bool exists(const Context& context, const GraphSpec& spec);
  ~GpuGraph();
  GpuGraph(GpuGraph&&) noexcept;
  GpuGraph& operator=(GpuGraph&&) noexcept;

  std::size_t workspace_bytes() const;
  const std::string& engine() const;
  // Takes the tensors that the graph has (tensors_of()), all of which must be there.
  void bind(std::initializer_list<Place> places, void* workspace);
  void run() const;  // on the context's stream

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Builds graphs side by side in the context's threads of the host, so that who asks for one later
// finds it ready: what takes long there is the library's compiler. Left out are those that the plan
// table gives to our own kernels, and those that cannot be built, which say so when they are asked
// for. progress(done, all) is called by this thread, now and then.
void build_graphs(const Context& context, const std::vector<GraphSpec>& graphs,
                  const std::function<void(std::int64_t, std::int64_t)>& progress);

// The engines that a context's graphs shall run on; before the first graph is built. Entries for
// another GPU or cuDNN have no meaning here and are left out.
void set_plans(const Context& context, const GpuPlans& plans);
const GpuPlans& plans_of(const Context& context);

// Times the first ready-made engines of a graph on the context's GPU, `repeats` times each in turn,
// on random numbers, and takes the fastest of those that agree with the first within rounding.
GpuPlans::Timing time_engines(const Context& context, const GraphSpec& spec, int repeats);

// What the names of engines hold for: "NVIDIA H200, cuDNN 91900".
std::string plan_environment(const Context& context);

}  // namespace rk
