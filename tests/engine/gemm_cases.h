// Products (engine/device/gemm.h) of random forms, sizes and strides against three loops in double.
// Run on the CPU by engine_test, on the emulated GPU by host_gpu_test and on a real one by
// cuda_test.
#pragma once

#include "engine/device/context.h"

#include <cstdint>

namespace rk {

// Holds the gtest expectations.
void check_gemm(const Context& context, std::uint64_t seed);

}  // namespace rk
