#include "kernels/cuda/sort.h"

#include "engine/device/cuda/error.h"

#include <cub/device/device_radix_sort.cuh>

namespace rk {

template <class Key> std::size_t sort_bytes(std::int64_t count) {
  std::size_t bytes = 0;
  cub::DoubleBuffer<Key> keys;
  cub::DoubleBuffer<std::uint32_t> items;
  check_cuda(cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, items, count), "plan sort");
  return bytes;
}

template <class Key>
DevicePairs<Key> sort_pairs(std::int64_t count, int bits, DevicePairs<Key> a, DevicePairs<Key> b,
                            void* workspace, std::size_t workspace_bytes, CudaStream stream) {
  cub::DoubleBuffer<Key> keys(a.keys, b.keys);
  cub::DoubleBuffer<std::uint32_t> items(a.items, b.items);
  check_cuda(cub::DeviceRadixSort::SortPairs(workspace, workspace_bytes, keys, items, count, 0,
                                             bits, stream),
             "sort");
  return {keys.Current(), items.Current()};
}

#define RK_SORT(Key)                                                                          \
  template std::size_t sort_bytes<Key>(std::int64_t);                                         \
  template DevicePairs<Key> sort_pairs(std::int64_t, int, DevicePairs<Key>, DevicePairs<Key>, \
                                       void*, std::size_t, CudaStream)

RK_SORT(std::uint32_t);
RK_SORT(std::uint64_t);

}  // namespace rk
