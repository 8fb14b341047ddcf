// Tools to find out on a GPU which of two ways is faster, and whether they agree.
#pragma once

#include "engine/base/dtype.h"
#include "engine/device/context.h"
#include "engine/device/cuda/graph.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace rk::gpu {

// Fills device memory with `count` random numbers in [-1, 1) of float32 or a 16-bit type, or random
// bytes, because GPUs run faster on zeros. The numbers repeat after 2^20. Waits.
void fill_with_noise(const Context& context, void* device, std::int64_t count, DType type,
                     std::uint32_t stream);

// The root mean square of the difference between `count` numbers of float32 or a 16-bit type in
// device memory, relative to that of `expected`; infinite if a difference is not finite. Waits.
//
// Not the largest difference: where a graph computes ReLU's mask from a normalised value, another
// order of rounding lets a few elements in a million pass that another engine masks.
double relative_error(const Context& context, const void* got, const void* expected,
                      std::int64_t count, DType type);

// A single kernel on an idle GPU waits for the host and reads what the previous one left in the
// caches; in a step it does neither. So the timed work is captured this many times in one graph, on
// tensors that together are larger than any GPU's caches.
constexpr std::size_t kTrialLaunches = 8;
constexpr std::size_t kBeyondCaches = std::size_t{128} << 20;

// The median time in milliseconds of each graph's replay, over `repeats` replays of each, in turn.
// A graph whose best of two replays takes more than 3 times the fastest is not replayed further.
// Waits.
std::vector<double> time_replays(const Context& context,
                                 const std::vector<std::unique_ptr<CudaGraph>>& graphs,
                                 int repeats);

}  // namespace rk::gpu
