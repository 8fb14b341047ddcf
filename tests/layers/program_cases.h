// Random programs: values and gradients against their definition. Run on the CPU by layers_test, on
// the emulated GPU by host_gpu_test and on a real one by cuda_test. The functions hold the gtest
// expectations.
#pragma once

#include "engine/device/context.h"
#include "engine/device/precision.h"

#include <cstdint>

namespace rk {

// A linear layer's result, read by others, at times through a ReLU. Compares with loops in double.
void check_linear_layers(const Context& context, std::uint64_t seed);

// Joins up to five images, each behind a layer that can write where they are joined, or behind one
// that cannot; some at two places. block: adjacent channels of the images where these divide into
// such blocks; 0: all. The result must be exact.
void check_joined_channels(const Context& context, Precision precision, std::int64_t block,
                           std::uint64_t seed);

}  // namespace rk
