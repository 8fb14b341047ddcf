// The layers' conformance list on a GPU: each layer computes there what it computes on the CPU, in
// float32. Run by host_gpu_test on a GPU made of the host and by cuda_test on a real one.
#pragma once

#include "tests/layers/layer_cases.h"

namespace rk::testing {

// Of one layer: output, gradients of inputs and parameters, running statistics; with the batch's
// statistics both by our own kernels and, as in tf32, by the library's graphs. Expects inside.
void compare_with_cpu(const LayerCase& layer, const Context& gpu);

}  // namespace rk::testing
