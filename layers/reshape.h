// The same elements in the same order with other dimensions; images in NHWC. y lies inside x, and
// its gradient inside x's gradient, if the tape allows it (NodeOutput::part_at), that is if x is
// dense or its last dimension stays the same; else it is copied.
#pragma once

#include "engine/tape/program.h"

#include <string>

namespace rk {

// shape must have as many elements as x. Returns x itself if it already has that shape.
TensorId reshape(Program& program, TensorId x, const Shape& shape, const std::string& name);

}  // namespace rk
