// Images of one size, one behind the other along the channels:
//   (N, H, W, C1), (N, H, W, C2), ... -> (N, H, W, C1 + C2 + ...).
// The result is in blocks of channels where all inputs can be (engine/tape/layout.h), else NHWC;
// one that lies otherwise is reordered first.
#pragma once

#include "engine/tape/program.h"

#include <string>
#include <vector>

namespace rk {

TensorId concat(Program& program, const std::vector<TensorId>& inputs, const std::string& name);

// x with `width` channels side by side: x itself where it is so already.
TensorId reorder(Program& program, TensorId x, std::int64_t width, const std::string& name);

}  // namespace rk
