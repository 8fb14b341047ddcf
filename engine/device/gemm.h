// Matrix products in single precision (engine/device/matrix_product.h), of matrices that lie on the
// context's device. Accumulates in float32 (on a GPU without TF32, the same bits every time).
#pragma once

#include "engine/device/context.h"
#include "engine/device/matrix_product.h"

namespace rk {

//   const Factor<float> gallery{embeddings, n, k, k};
//   gemm(context, {.a = {queries, m, k, k}, .b = transposed(gallery), .c = {scores, m, n, n}});
// Throws DeviceError if the device's library refuses the product.
void gemm(const Context& context, const MatrixProduct<float>& product);

}  // namespace rk
