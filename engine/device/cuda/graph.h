// A stream's work captured once as a CUDA graph and replayed with one call, so that hundreds of
// kernels cost the host a single launch. Captured work must not allocate or wait, and must read
// data that changes from step to step from device memory only. Everything it calls must have run
// once before, because libraries load kernels at their first call.
#pragma once

#include "engine/device/cuda/context.h"

#include <cstddef>
#include <functional>
#include <memory>

namespace rk {

class CudaGraph {
 public:
  // Calls `work` once to record what it puts on the context's stream; nothing is executed. Throws
  // DeviceError if some of the work cannot be captured.
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
