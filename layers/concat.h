// Images of one size, one behind the other along the channels:
//   (N, H, W, C1), (N, H, W, C2), ... -> (N, H, W, C1 + C2 + ...).
// The result is in blocks of channels where all inputs can be (engine/tape/layout.h), else NHWC.
#pragma once

#include "engine/tape/program.h"

#include <string>
#include <vector>

namespace rk {

TensorId concat(Program& program, const std::vector<TensorId>& inputs, const std::string& name);

}  // namespace rk
