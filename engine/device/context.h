// The one door to a device: what a computation runs on, passed explicitly to everything that
// computes, so there are no globals. Holds the number of threads, the libraries' handles and, for a
// computation on a GPU, its stream.
//
// Memory, copies, products (engine/device/gemm.h) and kernels (kernels/launch.h) are asked of a
// Context and go to the CPU or the GPU that it stands for. On a GPU all of it is asynchronous and
// in the stream's order; only synchronize() waits. A build without CUDA links stand-ins
// (engine/device/absent) that refuse a GPU with a DeviceError.
#pragma once

#include "engine/device/cuda_stream.h"
#include "engine/device/memory.h"
#include "engine/driver/device.h"

#include <memory>
#include <string>

namespace rk {

class CudaContext;   // engine/device/cuda/context.h
struct CudnnHandle;  // layers/graphs/cudnn/graph_run.cpp
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
  // Of the device computed on. DeviceError where there is not so much.
  Memory allocate(std::size_t bytes) const;
  std::size_t free_bytes() const;  // now
  // Within such memory.
  void copy(void* to, const void* from, std::size_t bytes) const;
  void clear(void* to, std::size_t bytes) const;  // to zeros
  // Between the host and such memory. On a GPU `host` is a PinnedBuffer's and stays as it is until
  // the copy is done, and neither may be captured.
  void upload(void* device, const void* host, std::size_t bytes) const;
  void download(void* host, const void* device, std::size_t bytes) const;
  // Waits for everything so far; DeviceError for what went wrong in it. Nothing on the CPU.
  void synchronize() const;

  const CudaContext& cuda() const { return *cuda_; }  // only on a GPU
  CudaStream stream() const;                          // null on the CPU
  // All but the program itself that the last bits of a result depend on: processor, libraries,
  // threads. Runs are bit-equal where these are.
  std::string describe() const;
  OneDnn& onednn() const { return *onednn_; }
  // cuDNN's handle: made by whoever first asks cuDNN for something.
  std::shared_ptr<CudnnHandle>& cudnn() const { return cudnn_; }

 private:
  int threads_;
  std::unique_ptr<OneDnn> onednn_;
  std::unique_ptr<const CudaContext> cuda_;
  mutable std::shared_ptr<CudnnHandle> cudnn_;  // shared: only layers/ know how to free it
};

}  // namespace rk
