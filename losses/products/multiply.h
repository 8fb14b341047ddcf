// The matrix products of a loss (engine/device/matrix_product.h) in either precision, S float or
// double. Float uses engine/device/gemm.h, on either device; double, which only checks and tests
// use, is a plain loop over cores.
#pragma once

#include "engine/device/context.h"
#include "engine/device/matrix_product.h"

namespace rk {

// In double not with both factors transposed.
template <class S> void multiply(const Context& context, const MatrixProduct<S>& product);

// The same on the CPU if A has few non-zeros: each row of C is a sum of rows of B, added by one
// thread. Neither factor may be transposed.
template <class S> void multiply_few(const Context& context, const MatrixProduct<S>& product);

}  // namespace rk
