#include "engine/device/cuda/buffer.h"
#include "engine/device/pinned_buffer.h"

#include "engine/base/error.h"
#include "engine/base/integers.h"
#include "engine/device/cuda/error.h"
#include "engine/device/out_of_memory.h"

#include <cstdlib>
#include <new>

namespace rk {
namespace {

// cudaMemcpy() works on the default stream, which neither waits for our non-blocking streams nor
// they for it; and from memory that is not page-locked it may return while the last bytes are in
// flight.
void copy_and_wait(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                   const char* what) {
  check_work(cudaDeviceSynchronize(), "the GPU's work");
  check_work(cudaMemcpy(to, from, bytes, kind), what);
  check_work(cudaDeviceSynchronize(), what);
}

}  // namespace

// Destructors do not throw; the next call to the device reports its errors.
void DeviceBuffer::Free::operator()(std::byte* data) const { cudaFree(data); }
void PinnedBuffer::Free::operator()(std::byte* data) const {
  page_locked ? static_cast<void>(cudaFreeHost(data)) : std::free(data);
}

std::byte* PinnedBuffer::page_locked_memory(std::size_t bytes) {
  void* data = nullptr;
  const cudaError_t error = cudaMallocHost(&data, bytes);
  // The driver's errors when the system refuses to lock more pages.
  for (const cudaError_t refused :
       {cudaErrorMemoryAllocation, cudaErrorOperatingSystem, cudaErrorNotSupported}) {
    if (error != refused) continue;
    cudaGetLastError();
    return nullptr;
  }
  check_cuda(error, "page-locked memory");
  return static_cast<std::byte*>(data);
}

std::byte* PinnedBuffer::ordinary_memory(std::size_t bytes) {
  constexpr std::size_t kAlignment = 256;
  void* data = std::aligned_alloc(kAlignment, round_up(bytes, kAlignment));
  if (data == nullptr) throw std::bad_alloc();
  return static_cast<std::byte*>(data);
}

DeviceBuffer::DeviceBuffer(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  void* data = nullptr;
  const cudaError_t error = cudaMalloc(&data, bytes);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    std::size_t free = 0;
    std::size_t total = 0;
    check_cuda(cudaMemGetInfo(&free, &total), "device memory");
    throw OutOfMemory(out_of_memory(static_cast<std::int64_t>(bytes),
                                    static_cast<std::int64_t>(free),
                                    static_cast<std::int64_t>(total)));
  }
  check_cuda(error, "device memory");
  data_.reset(static_cast<std::byte*>(data));
}

void DeviceBuffer::upload(const void* from, std::size_t bytes) {
  expect(bytes <= bytes_, "[device memory] expected a copy of at most {} bytes, got {}", bytes_,
         bytes);
  if (bytes == 0) return;
  copy_and_wait(data_.get(), from, bytes, cudaMemcpyHostToDevice, "copy to the GPU");
}

void DeviceBuffer::download(void* to, std::size_t bytes) const {
  expect(bytes <= bytes_, "[device memory] expected a copy of at most {} bytes, got {}", bytes_,
         bytes);
  if (bytes == 0) return;
  copy_and_wait(to, data_.get(), bytes, cudaMemcpyDeviceToHost, "copy from the GPU");
}

}  // namespace rk
