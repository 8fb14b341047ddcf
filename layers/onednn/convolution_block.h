// The channel block (engine/tape/layout.h) that oneDNN's direct convolutions want on this
// processor: 16, 8, or 0 for none.
#pragma once

#include <cstdint>

namespace rk {

std::int64_t convolution_block();

}  // namespace rk
