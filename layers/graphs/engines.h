// cuDNN as GraphRunner uses it, without cuDNN's headers: the engines that it has for a graph.
// Defined in cudnn/engines.cpp; tests have engines of their own (tests/host_gpu/cudnn/engines.cpp).
#pragma once

#include "engine/device/cuda_stream.h"
#include "layers/graphs/graph.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

namespace rk::cudnn {

// Throws DeviceError if the library cannot be loaded.
std::string version();  // "91900"

// The library's state for one stream of the calling thread's GPU.
class Handle {
 public:
  explicit Handle(CudaStream stream);
  ~Handle();
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  struct State;
  const State& state() const { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

// Where a run finds its tensors and constants in memory.
using Places = std::unordered_map<std::int64_t, void*>;
constexpr std::int64_t place_of(Graph::Value value) { return value + 1; }

class Engines {
 public:
  // Throws DeviceError, with the graph and the reason, if there are none.
  Engines(const Graph& graph, const Handle& handle);
  ~Engines();
  Engines(const Engines&) = delete;
  Engines& operator=(const Engines&) = delete;

  const Graph& graph() const;
  std::int64_t count() const;  // in the order of the heuristics, the most promising first
  std::string name(std::int64_t engine) const;
  bool compiles(std::int64_t engine) const;  // building it takes seconds
  // Makes an engine ready to run; returns why it cannot be, or nothing.
  std::string build(std::int64_t engine);

  // Of an engine that was built. run() does not wait, and throws DeviceError if it is refused.
  std::size_t workspace_bytes(std::int64_t engine) const;
  void run(const Handle& handle, Places& places, void* workspace, std::int64_t engine);

  // The places of the numbers that the graph reads besides its tensors; they live as long as this.
  Places constants();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rk::cudnn
