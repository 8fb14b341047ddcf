// Slices, reshapes and joins in random programs: values and gradients against their definition, and
// where they lie in memory. Run on the CPU by layers_test, on the emulated GPU by host_gpu_test and
// on a real one by cuda_test. The functions hold the gtest expectations.
#pragma once

#include "engine/device/context.h"
#include "engine/device/precision.h"

#include <cstdint>

namespace rk::testing {

// Slices a linear layer's result at random: ranges that meet, lie apart or overlap, through
// reshapes, read by layers that take rows with gaps and by layers that do not; the result is also
// read whole. All tensors have the type of images. Compares with loops in double.
void check_slices_of_features(const Context& context, Precision precision, std::uint64_t seed);

// Cuts the channels of images into ranges and joins them in another order, in blocks of `width` (0:
// all channels side by side). The result must be exact.
void check_shuffled_channels(const Context& context, Precision precision, std::int64_t width,
                             std::uint64_t seed);

// A transformer's query, key and value, ranges of one linear layer's result: neither they nor their
// gradients may be copied.
void check_query_key_value(const Context& context);

}  // namespace rk::testing
