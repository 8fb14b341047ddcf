// Runs a graph (layers/graphs/graph.h) on a context's GPU. A graph's plan is built once per
// context, however many nodes run the graph. The plan uses the engine that the context's plan table
// (layers/graphs/plans.h) names, else the first that cuDNN's heuristics offer, so that a resumed
// run computes the same bits.
#pragma once

#include "engine/device/context.h"
#include "layers/graphs/graph.h"
#include "layers/graphs/plans.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace rk {

class GraphRunner {
 public:
  struct Place {
    GraphRole role;
    const void* data;  // written to if the graph writes this tensor
  };

  GraphRunner();  // to be assigned to before run()
  // Throws DeviceError if cuDNN is missing or refuses the graph.
  GraphRunner(const Context& context, const Graph& graph);
  // Whether cuDNN has the graph for this GPU and it runs; if not, prints a note with the reason and
  // `otherwise`, which says what happens instead. A graph built for this check is kept. Runs it on
  // memory of its own, if that much is free, and waits.
  static bool exists(const Context& context, const Graph& graph, const char* otherwise);
  ~GraphRunner();
  GraphRunner(GraphRunner&&) noexcept;
  GraphRunner& operator=(GraphRunner&&) noexcept;

  std::size_t workspace_bytes() const;
  const std::string& engine() const;
  // Takes the addresses of the tensors that the graph reads and writes; all must be given.
  void bind(const std::vector<Place>& places, void* workspace);
  void run() const;  // on the context's stream

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Builds graphs in parallel on the context's host threads, so that later requests find them ready:
// most of the time goes to the library's compiler. Graphs that cannot be built are skipped, and
// report why when they are requested. The calling thread calls progress(done, all) some ten times a
// second; what it throws ends the building.
void build_graphs(const Context& context, const std::vector<Graph>& graphs,
                  const std::function<void(std::int64_t, std::int64_t)>& progress);

// Sets the engines for a context's graphs; call before recording programs. A table for another GPU
// or cuDNN version is ignored, with a note.
void set_plans(const Context& context, const GpuPlans& plans);
const GpuPlans& plans_of(const Context& context);
// Of the graphs built in this context: how many have an engine named in the table, and how many of
// these run on that engine.
struct PlansTaken {
  int named = 0, taken = 0;
};
PlansTaken plans_taken(const Context& context);

// The environment in which the names of engines are valid: "NVIDIA H200, cuDNN 91900"; empty on a
// CPU, for which programs for a GPU can be recorded but not planned.
std::string plan_environment(const Context& context);

}  // namespace rk
