// Brings batches from the host into one fixed place of the GPU's memory, each while the GPU still
// works on the one before:
//
//   upload.stage(first);
//   for (...) {
//     upload.take();          // what was staged is in data() for what follows on the stream
//     ... put the step on the stream ...
//     upload.stage(next);     // runs beside it
//   }
//
// The bytes go through page-locked memory to a second place on the GPU, by a stream of their own;
// take() copies them from there.
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

  // `bytes` may be used again when this returns. Waits until the page-locked memory is free.
  void stage(std::span<const std::byte> bytes);
  void take();
  std::byte* data() const;
  std::size_t reserved_bytes() const;  // on the GPU

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rk
