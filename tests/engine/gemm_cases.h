// Prepared products (engine/device/gemm.h) of random forms, sizes and strides against three loops
// in double. Run on the CPU by engine_test, on the emulated GPU by host_gpu_test and on a real one
// by cuda_test.
#pragma once

#include "engine/base/dtype.h"
#include "engine/device/context.h"

#include <cstdint>

namespace rk::testing {

// A and B have type `in`, C and the bias `out`. Holds the gtest expectations.
void check_prepared_gemm(const Context& context, DType in, DType out, std::uint64_t seed);

}  // namespace rk::testing
