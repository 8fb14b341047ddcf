// A range of what lies side by side:  x (..., C) -> y (..., count),  y[..., c] = x[..., first + c]:
// channels of images, features of rows.
// y lies in x, and its gradient in x's, where the tape allows it (NodeOutput::part_at); else it is
// copied. Of images in blocks of channels (engine/tape/layout.h) a range of whole blocks stays so,
// of others y is NHWC.
#pragma once

#include "engine/tape/program.h"

#include <cstdint>
#include <string>

namespace rk {

// 0 <= first, 0 < count, first + count <= C.
TensorId slice(Program& program, TensorId x, std::int64_t first, std::int64_t count,
               const std::string& name);

}  // namespace rk
