// Prepared products (engine/device/gemm.h) of random forms, sizes and strides against three loops
// in double. Run on the CPU by engine_test, on a GPU made of the host by host_gpu_test and on a
// real one by cuda_test.
#pragma once

#include "engine/base/dtype.h"
#include "engine/device/context.h"

#include <cstdint>

namespace rk::testing {

// A and B of type `in`, C and the bias of `out`. Expects inside.
void check_prepared_gemm(const Context& context, DType in, DType out, std::uint64_t seed);

}  // namespace rk::testing
