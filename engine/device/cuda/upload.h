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
// take() copies them from there. The host's memory is there twice, so that stage() waits for no
// upload but the one before the last, and the batch before is still at hand.
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

  // `bytes` may be used again when this returns.
  void stage(std::span<const std::byte> bytes);
  void take();
  // In data() is again, for what follows on the stream, what was staged before what was taken last.
  // Nothing may have been staged since.
  void take_back();
  std::byte* data() const;
  std::size_t reserved_bytes() const;  // on the GPU

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rk
