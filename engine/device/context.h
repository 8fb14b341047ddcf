// What a computation runs on: passed explicitly to everything that computes, so there are no
// globals. Holds the number of threads, the libraries' handles and, for a computation on a GPU, its
// stream.
#pragma once

#include "engine/device/device.h"
#include "engine/device/memory.h"

#include <memory>
#include <string>

namespace rk {

class CudaContext;   // engine/device/cuda/context.h
struct CudnnHandle;  // layers/cudnn/graph.cpp
struct OneDnn;       // engine/device/onednn.h

class Context {
 public:
  // threads <= 0: as many as the machine (or its cgroup) lets this process use.
  explicit Context(int threads = 0);
  // On the GPU that `device` names, where it names one; DeviceError where that does not work.
  Context(int threads, const Device& device);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  int threads() const { return threads_; }
  bool on_gpu() const { return cuda_ != nullptr; }
  const CudaContext& cuda() const { return *cuda_; }  // only on a GPU
  // Of the device computed on. DeviceError where there is not so much.
  Memory allocate(std::size_t bytes) const;
  // Within such memory; on a GPU in the stream's order.
  void copy(void* to, const void* from, std::size_t bytes) const;
  // All but the program itself that the last bits of a result depend on: processor, libraries,
  // threads. Runs are bit-equal where these are.
  std::string describe() const;
  OneDnn& onednn() const { return *onednn_; }
  // cuDNN's handle: made by who first asks cuDNN for something.
  std::shared_ptr<CudnnHandle>& cudnn() const { return cudnn_; }

 private:
  int threads_;
  std::unique_ptr<OneDnn> onednn_;
  // Shared pointers, because they know how to free what a build without CUDA has no code for.
  std::shared_ptr<const CudaContext> cuda_;
  mutable std::shared_ptr<CudnnHandle> cudnn_;
};

}  // namespace rk
