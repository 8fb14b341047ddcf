// In place of kernels/cuda/sort.cu.
#include "kernels/cuda/sort.h"
#include "engine/base/integers.h"
#include "tests/host_gpu/cuda/memory.h"
#include "tests/host_gpu/cuda/stream.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace rk {

template <class Key> std::size_t sort_bytes(std::int64_t) { return 64; }

template <class Key>
DevicePairs<Key> sort_pairs(std::int64_t count, int bits, DevicePairs<Key> a, DevicePairs<Key> b,
                            void* workspace, std::size_t workspace_bytes, CudaStream stream) {
  host_gpu::expect_kind(host_gpu::Kind::kDevice, workspace, workspace_bytes, "sort, its workspace");
  const Key all = ~Key{0};
  const Key mask =
      bits == 8 * static_cast<int>(sizeof(Key)) ? all : static_cast<Key>(~(all << bits));
  // CUB's number of moves depends on the count and the GPU too: no caller may know where it ends.
  const bool moved = ((bits + 7) / 8 + count) % 2 != 0;
  const DevicePairs<Key> result = moved ? b : a, scratch = moved ? a : b;
  host_gpu::put(stream, "sort", [=] {
    std::vector<std::int64_t> order(static_cast<std::size_t>(count));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](std::int64_t i) { return a.keys[i] & mask; });
    const std::vector<Key> keys(a.keys, a.keys + count);
    const std::vector<std::uint32_t> items(a.items, a.items + count);
    for (std::int64_t i = 0; i < count; ++i) {
      result.keys[i] = keys[at(order[static_cast<std::size_t>(i)])];
      result.items[i] = items[at(order[static_cast<std::size_t>(i)])];
    }
    const auto each = static_cast<std::size_t>(count);
    host_gpu::fill_with_nan(scratch.keys, each * sizeof(Key));
    host_gpu::fill_with_nan(scratch.items, each * sizeof(std::uint32_t));
  });
  return result;
}

template std::size_t sort_bytes<std::uint32_t>(std::int64_t);
template std::size_t sort_bytes<std::uint64_t>(std::int64_t);
template DevicePairs<std::uint32_t> sort_pairs(std::int64_t, int, DevicePairs<std::uint32_t>,
                                               DevicePairs<std::uint32_t>, void*, std::size_t,
                                               CudaStream);
template DevicePairs<std::uint64_t> sort_pairs(std::int64_t, int, DevicePairs<std::uint64_t>,
                                               DevicePairs<std::uint64_t>, void*, std::size_t,
                                               CudaStream);

}  // namespace rk
