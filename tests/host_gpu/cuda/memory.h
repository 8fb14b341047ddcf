// The emulated GPU's memory: the ranges that cudaMalloc() and cudaMallocHost() gave, so that a copy
// can check which kind its pointers are. Both kinds are filled with bytes 0xFF, NaN in every float
// type and -1 in every integer, when they are allocated and when they are freed: reading what was
// never written shows.
#pragma once

#include <cstddef>

namespace rk::host_gpu {

enum class Kind { kDevice, kHost };

// Null if less than `bytes` are free.
void* allocate(Kind kind, std::size_t bytes);
void release(void* data);

// Throws DeviceError naming `what` unless [data, data + bytes) lies within one range of that kind.
// While the system gives no page-locked memory, any memory outside the ranges counts as the host's.
void expect_kind(Kind kind, const void* data, std::size_t bytes, const char* what);

// What CudaContext::free_bytes() returns: as much as there could be unless a test sets less.
// Buffers can have all of it but kOfLibraries, what a GPU's libraries would take for their kernels.
constexpr std::size_t kOfLibraries = std::size_t{512} << 20;
constexpr std::size_t kTotal = std::size_t{1} << 46;
std::size_t free_bytes();
void set_free_bytes(std::size_t bytes);

// Whether the system gives page-locked memory; it does until a test says otherwise.
void set_page_locking(bool possible);

void fill_with_nan(void* data, std::size_t bytes);

}  // namespace rk::host_gpu
