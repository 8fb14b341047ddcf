// A range of the last dimension:  x (..., C) -> y (..., count),  y[..., c] = x[..., first + c]:
// channels of images, features of rows.
// y lies inside x, and its gradient inside x's gradient, if the tape allows it
// (NodeOutput::part_at); else it is copied. If images are in channel blocks (engine/tape/layout.h),
// a range of whole blocks stays in blocks; any other range is NHWC.
#pragma once

#include "engine/tape/program.h"

#include <cstdint>
#include <string>

namespace rk {

// 0 <= first, 0 < count, first + count <= C.
TensorId slice(Program& program, TensorId x, std::int64_t first, std::int64_t count,
               const std::string& name);

}  // namespace rk
