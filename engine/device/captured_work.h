// Repeated work on a context's device. On a GPU the second call in a row with the same sizes
// captures the work as a CUDA graph, and that call and later ones replay the graph; a replay
// computes the same bits as kernels launched one by one. On the CPU every call runs the work
// directly.
#pragma once

#include "engine/device/context.h"
#include "engine/device/cuda/graph.h"

#include <cstdint>
#include <functional>
#include <memory>

namespace rk {

class CapturedWork {
 public:
  // What several processes do that share the work; both calls are collective.
  struct Sharing {
    // Gets whether this process could capture the work; returns whether all could.
    std::function<bool(bool captured)> all_captured;
    // Called if one could not, when no graph is left, before the work is run without one.
    std::function<void()> gave_up;
  };

  // captures: whether to capture at all. If a capture fails, run() stops trying, in all processes:
  // of a collective, NCCL lets either all replay it or none.
  CapturedWork(const Context& context, bool captures, std::function<void()> work, Sharing sharing);

  // sizes: a number that identifies all that the work depends on apart from memory contents. The
  // first run with new sizes is never captured, because it may load kernels, which a capture
  // forbids.
  void run(std::int64_t sizes);
  bool captured() const { return graph_ != nullptr; }  // whether the last run was a replay

 private:
  void capture();

  const Context& context_;
  bool captures_;
  std::function<void()> work_;
  Sharing sharing_;
  std::int64_t ran_with_ = -1;  // sizes of the last run that was not a replay; -1: none yet
  std::unique_ptr<CudaGraph> graph_;
};

}  // namespace rk
