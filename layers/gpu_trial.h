// What it takes to try out on a GPU which of two ways is faster and whether they agree.
#pragma once

#include "engine/context.h"
#include "engine/dtype.h"

#include <cstdint>
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

// Of times, which are not empty; of an even number the larger of the two in the middle.
double median(std::vector<double> times);

}  // namespace rk::gpu
