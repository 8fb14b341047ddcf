// The one door to a device: what a computation runs on, passed explicitly to everything that
// computes, so that there are no globals. Holds the number of threads, the libraries' handles and,
// on a GPU, the stream.
//
// Memory, copies, products (engine/device/gemm.h) and kernels (kernels/launch.h) take a Context and
// run on the CPU or GPU that it stands for. On a GPU all of them are asynchronous and in stream
// order; only synchronize() waits. A build without CUDA links stand-ins (engine/device/absent) that
// refuse a GPU with a DeviceError.
#pragma once

#include "engine/device/cuda_stream.h"
#include "engine/device/memory.h"
#include "engine/driver/device.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <ranges>
#include <string>

namespace rk {

class CudaContext;  // engine/device/cuda/context.h
struct GraphCache;  // layers/graphs/graph_runner.cpp
struct OneDnn;      // engine/device/onednn.h

class Context {
 public:
  // threads <= 0: as many as the machine (or the process's cgroup) allows.
  explicit Context(int threads = 0);
  // On the GPU or CPU that `device` names; throws DeviceError if that GPU cannot be used.
  Context(int threads, const Device& device);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  int threads() const { return threads_; }
  bool on_gpu() const { return cuda_ != nullptr; }
  // Memory of the context's device: of so many bytes, for `count` values, or with a copy of
  // `values`. Throws DeviceError if too little is free.
  Memory allocate(std::size_t bytes) const;
  template <class T> Memory allocate(std::int64_t count) const {
    return allocate(static_cast<std::size_t>(count) * sizeof(T));
  }
  template <std::ranges::contiguous_range Values> Memory copy_of(const Values& values) const {
    Memory memory = allocate<std::ranges::range_value_t<Values>>(std::ranges::ssize(values));
    memory.upload(std::ranges::data(values), memory.bytes());
    return memory;
  }
  std::size_t free_bytes() const;  // now
  // Within the device's memory.
  void copy(void* to, const void* from, std::size_t bytes) const;
  void clear(void* to, std::size_t bytes) const;  // to zeros
  // Between the host and the device's memory. On a GPU, `host` must lie in a PinnedBuffer and stay
  // unchanged until the copy is done, and neither call may be captured.
  void upload(void* device, const void* host, std::size_t bytes) const;
  void download(void* host, const void* device, std::size_t bytes) const;
  // Waits for all work so far; throws DeviceFault if any of it failed. Does nothing on the CPU.
  void synchronize() const;

  const CudaContext& cuda() const { return *cuda_; }  // only on a GPU
  CudaStream stream() const;                          // null on the CPU
  // All of the host that the last bits of a result depend on besides the program itself: processor,
  // library, threads. Runs on the CPU with equal descriptions are bit-equal; on a GPU
  // plan_environment() and the plans belong to it (layers/graphs/graph_runner.h).
  std::string describe() const;
  std::string gpu_name() const;  // "NVIDIA H200"; empty on the CPU
  OneDnn& onednn() const { return *onednn_; }
  // Of the library's graphs that run on this context; null until layers/ makes it.
  std::shared_ptr<GraphCache>& graph_cache() const { return graph_cache_; }

 private:
  int threads_;
  std::unique_ptr<OneDnn> onednn_;
  std::unique_ptr<const CudaContext> cuda_;
  mutable std::shared_ptr<GraphCache> graph_cache_;  // shared: only layers/ knows how to free it
};

}  // namespace rk
