// What it takes to try out on a GPU which of two ways is faster and whether they agree.
#pragma once

#include "engine/base/dtype.h"
#include "engine/device/context.h"
#include "engine/device/cuda/graph.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace rk::gpu {

// `count` random numbers in [-1, 1) of float32 or a 16-bit type, or bytes, into device memory: on
// zeros GPUs run faster. They repeat after a million. Waits.
void fill_with_noise(const Context& context, void* device, std::int64_t count, DType type,
                     std::uint32_t stream);

// The largest difference between `count` numbers of float32 or a 16-bit type in device memory, of
// the largest of `expected`; infinite where a difference is not a finite number. Waits.
double largest_error(const Context& context, const void* got, const void* expected,
                     std::int64_t count, DType type);

// A kernel by itself on an idle GPU waits for the host and reads what the last one left in the
// caches; in a step it does neither. So what is timed is captured this often in one graph, on
// tensors that are larger than any GPU's caches together.
constexpr std::size_t kTrialLaunches = 8;
constexpr std::size_t kBeyondCaches = std::size_t{128} << 20;

// The median time in milliseconds of each graph's replay, `repeats` of each, in turn. One that is
// out of the question after two is not replayed further. Waits.
std::vector<double> time_replays(const Context& context,
                                 const std::vector<std::unique_ptr<CudaGraph>>& graphs,
                                 int repeats);

// Of times, which are not empty; of an even number the larger of the two in the middle.
double median(std::vector<double> times);

}  // namespace rk::gpu
