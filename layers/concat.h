// Concatenates images of one size along the channels:
//   (N, H, W, C1), (N, H, W, C2), ... -> (N, H, W, C1 + C2 + ...).
// The result is in channel blocks (engine/tape/layout.h) if all inputs can be, else NHWC.
#pragma once

#include "engine/tape/program.h"

#include <string>
#include <vector>

namespace rk {

TensorId concat(Program& program, const std::vector<TensorId>& inputs, const std::string& name);

}  // namespace rk
