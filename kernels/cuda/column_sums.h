// Sums over the rows of a matrix on a GPU: of what each row of a loss has measured.
#pragma once

#include "engine/device/cuda_stream.h"

namespace rk {

// totals[k] = the sum over rows of values[row, k], in double and in an order that depends only on
// `rows`. Asynchronous on `stream`; a launch that fails throws DeviceError.
void column_sums(const float* values, int rows, int columns, double* totals, CudaStream stream);

}  // namespace rk
