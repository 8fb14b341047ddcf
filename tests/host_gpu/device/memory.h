// The memory of the GPU that is made of the host: ranges that DeviceBuffer and PinnedBuffer hold,
// so that a copy can tell whether its pointers are what it takes them for. Both kinds are filled
// with bytes 0xFF, NaN in every float type and -1 in every integer, when they are made and when
// they are given back: what was never written shows.
#pragma once

#include <cstddef>

namespace rk::host_gpu {

enum class Kind { kDevice, kHost };

// DeviceError naming `what` unless [data, data + bytes) lies within one range of that kind.
void expect_kind(Kind kind, const void* data, std::size_t bytes, const char* what);

// What CudaContext::free_bytes() answers; as much as there could be unless a test says less. Of it
// buffers can have all but what the libraries of a GPU would take for their kernels.
constexpr std::size_t kOfLibraries = std::size_t{512} << 20;
std::size_t free_bytes();
void set_free_bytes(std::size_t bytes);

// Whether the system gives page-locked memory; it does until a test says otherwise.
void set_page_locking(bool possible);

void fill_with_nan(void* data, std::size_t bytes);

}  // namespace rk::host_gpu
