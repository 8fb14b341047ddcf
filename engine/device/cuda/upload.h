// Copies batches from the host into one fixed place in the GPU's memory, each while the GPU still
// works on the batch before:
//
//   upload.stage(first);
//   for (...) {
//     upload.take();          // data() holds the staged batch for later work on the stream
//     ... put the step on the stream ...
//     upload.stage(next);     // runs beside the step
//   }
//
// stage() copies the bytes into page-locked memory and from there, on a stream of its own, to a
// staging place on the GPU; take() copies them from the staging place to data(). There are two
// page-locked buffers, so that stage() waits only for the upload before the last, and the previous
// batch is kept.
#pragma once

#include "engine/device/cuda/context.h"

#include <cstddef>
#include <memory>
#include <span>

namespace rk {

class DeviceUpload {
 public:
  DeviceUpload();  // of nothing
  DeviceUpload(const CudaContext& cuda, std::size_t bytes);
  ~DeviceUpload();
  DeviceUpload(DeviceUpload&&) noexcept;
  DeviceUpload& operator=(DeviceUpload&&) noexcept;

  // The caller may reuse `bytes` when stage() returns.
  void stage(std::span<const std::byte> bytes);
  void take();
  // Restores in data(), for later work on the stream, the batch staged before the one taken last.
  // The caller must not have staged another since.
  void take_back();
  std::byte* data() const;
  std::size_t reserved_bytes() const;  // on the GPU

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rk
