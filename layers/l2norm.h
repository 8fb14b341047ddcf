// Scales rows to unit length:  x (N, D) -> y = x / max(|x|, epsilon).
// Backward:  dx = (dy - y (y . dy)) / |x|,  or dy / epsilon where |x| < epsilon (the divisor is
// then a constant). Norms and dot products are computed in double.
#pragma once

#include "engine/tape/program.h"

namespace rk {

TensorId l2norm(Program& program, TensorId x, const std::string& name, double epsilon = 1e-12);

}  // namespace rk
