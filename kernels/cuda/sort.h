// A device-wide stable sort of (key, item) pairs by unsigned keys, ascending, on a GPU (CUB's radix
// sort).
#pragma once

#include "engine/device/cuda_stream.h"

#include <cstddef>
#include <cstdint>

namespace rk {

template <class Key> struct DevicePairs {
  Key* keys = nullptr;
  std::uint32_t* items = nullptr;
};

// Bytes of workspace for up to `count` pairs.
template <class Key> std::size_t sort_bytes(std::int64_t count);

// Sorts `a` by the lowest `bits` of its keys, using `b` of the same size as scratch; returns
// whichever will hold the result. Asynchronous on `stream`, without allocating. Key: uint32 or
// uint64.
template <class Key>
DevicePairs<Key> sort_pairs(std::int64_t count, int bits, DevicePairs<Key> a, DevicePairs<Key> b,
                            void* workspace, std::size_t workspace_bytes, CudaStream stream);

}  // namespace rk
