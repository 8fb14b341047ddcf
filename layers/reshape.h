// The same elements in the same order under other dimensions; of images NHWC.
// y lies where x does, and its gradient in x's, where the tape allows it (NodeOutput::part_at),
// which is wherever x is dense or its last dimension stays; else it is copied.
#pragma once

#include "engine/tape/program.h"

#include <string>

namespace rk {

// shape has the elements of x. x itself where it has that shape already.
TensorId reshape(Program& program, TensorId x, const Shape& shape, const std::string& name);

}  // namespace rk
