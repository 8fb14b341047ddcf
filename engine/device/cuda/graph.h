// A stream's work captured once as a CUDA graph and replayed with one call: hundreds of kernels
// cost the host one launch. What is captured must allocate nothing, wait for nothing and read, of
// what changes from step to step, only device memory; everything that it calls must have run once
// before, for libraries load kernels then.
#pragma once

#include "engine/device/cuda/context.h"

#include <cstddef>
#include <functional>
#include <memory>

namespace rk {

class CudaGraph {
 public:
  // Calls `work` once, which puts its work on the context's stream; nothing of it is carried out.
  // DeviceError where something in it cannot be captured.
  CudaGraph(const CudaContext& cuda, const std::function<void()>& work);
  ~CudaGraph();
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  void launch() const;  // on the context's stream
  std::size_t nodes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rk
