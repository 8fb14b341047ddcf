// Runs a graph (layers/graphs/graph.h) on a context's GPU. The plan of a graph is built once for a
// context, however many nodes run it: the engine that the context's plan table
// (layers/graphs/plans.h) names, else the first that cuDNN's heuristics offer, so that a run that
// is resumed computes the same bits.
#pragma once

#include "engine/device/context.h"
#include "layers/graphs/graph.h"
#include "layers/graphs/plans.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rk {

class GpuGraph {
 public:
  struct Place {
    GraphRole role;
    const void* data;  // written where the graph writes
  };

  GpuGraph();  // runs nothing
  // DeviceError where cuDNN is missing or refuses the graph.
  GpuGraph(const Context& context, const Graph& graph);
  // Whether cuDNN has it for this GPU; where not, a note says so and what is done otherwise. What
  // was built to find out is kept.
  static bool exists(const Context& context, const Graph& graph, const char* otherwise);
  ~GpuGraph();
  GpuGraph(GpuGraph&&) noexcept;
  GpuGraph& operator=(GpuGraph&&) noexcept;

  std::size_t workspace_bytes() const;
  const std::string& engine() const;
  // Takes the tensors that the graph reads and writes, all of which must be there.
  void bind(const std::vector<Place>& places, void* workspace);
  void run() const;  // on the context's stream

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Builds graphs side by side in the context's threads of the host, so that whoever asks for one
// later finds it ready: what takes long there is the library's compiler. Those that cannot be built
// are left out and say so when they are asked for. progress(done, all) is called by this thread,
// now and then.
void build_graphs(const Context& context, const std::vector<Graph>& graphs,
                  const std::function<void(std::int64_t, std::int64_t)>& progress);

// The engines that a context's graphs shall run on; before programs are recorded. A table for
// another GPU or cuDNN has no meaning here and is left out.
void set_plans(const Context& context, const GpuPlans& plans);
const GpuPlans& plans_of(const Context& context);
// Of the graphs that were built there since: how many the table names an engine for, and how many
// of these run on it.
struct PlansTaken {
  int named = 0, taken = 0;
};
PlansTaken plans_taken(const Context& context);

// Times the first ready-made engines of a graph on the context's GPU, `repeats` times each in turn,
// on random numbers, and takes the fastest of those that agree with the first within rounding.
GpuPlans::Timing time_engines(const Context& context, const Graph& graph, int repeats);

// What the names of engines hold for: "NVIDIA H200, cuDNN 91900"; empty without a GPU.
std::string plan_environment(const Context& context);

}  // namespace rk
