// Element-wise layers as separate nodes; ReLU and addition after a batch normalisation are fused
// into it instead (batchnorm.h).
#pragma once

#include "engine/tape/program.h"

namespace rk {

// y = max(x, 0); the gradient at 0 is 0.
TensorId relu(Program& program, TensorId x, const std::string& name);

// y = a + b, same shape and layout.
TensorId add(Program& program, TensorId a, TensorId b, const std::string& name);

}  // namespace rk
