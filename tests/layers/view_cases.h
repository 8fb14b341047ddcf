// Slices, reshapes and what is joined, in programs drawn at random: values and gradients against
// their definition, and where they lie. Run on the CPU by layers_test, on a GPU made of the host by
// host_gpu_test and on a real one by cuda_test.
#pragma once

#include "engine/device/context.h"
#include "engine/device/precision.h"

#include <cstdint>

namespace rk::testing {

// A linear layer's result taken apart at random: ranges that meet, lie apart or overlap, through
// reshapes, read by layers that take rows apart and by some that do not, and also read whole; all
// of it in the type of images. Against loops in double. Expects inside.
void check_slices_of_features(const Context& context, Precision precision, std::uint64_t seed);

// The channels of images cut into ranges and joined in another order, in blocks of `width` (0: all
// channels side by side), exactly. Expects inside.
void check_shuffled_channels(const Context& context, Precision precision, std::int64_t width,
                             std::uint64_t seed);

// A transformer's three: one linear layer's result, whose ranges nothing copies, nor their
// gradients. Expects inside.
void check_query_key_value(const Context& context);

}  // namespace rk::testing
