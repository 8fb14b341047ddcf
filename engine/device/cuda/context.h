// What a computation on a GPU runs on: one stream of one device, and cuBLAS, loaded when the first
// context is made. A context's work runs in the order of its calls; no call waits for the GPU
// unless its comment says so.
#pragma once

#include "engine/device/cuda_stream.h"
#include "engine/device/matrix_product.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace rk {

class CudaContext {
 public:
  // Throws DeviceError if the device or cuBLAS does not work.
  explicit CudaContext(int device);
  ~CudaContext();
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  // Makes this GPU the calling thread's current device, as the libraries require in every thread.
  void use_in_this_thread() const;
  CudaStream stream() const;
  std::size_t free_bytes() const;   // of the GPU's memory, now
  const std::string& name() const;  // of the GPU: "NVIDIA H200"
  void synchronize() const;         // waits for all work so far; throws DeviceFault if any failed

  // `host` must lie in a PinnedBuffer and stay unchanged until the copy is done. Must not be
  // captured.
  void upload(void* device, const void* host, std::size_t bytes) const;
  void download(void* host, const void* device, std::size_t bytes) const;
  void copy(void* to, const void* from, std::size_t bytes) const;  // within the GPU's memory
  // Repeats the first `filled` bytes until `bytes` are filled.
  void repeat(std::byte* data, std::size_t filled, std::size_t bytes) const {
    while (filled < bytes) {
      const std::size_t more = std::min(filled, bytes - filled);
      copy(data + filled, data, more);
      filled += more;
    }
  }
  void clear(void* device, std::size_t bytes) const;  // to zeros

  // As rk::gemm (engine/device/gemm.h).
  void gemm(const MatrixProduct<float>& product) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rk
