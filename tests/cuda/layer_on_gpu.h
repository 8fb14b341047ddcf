// The layers' conformance list on a GPU: each layer must compute there what it computes on the CPU
// in float32. Run by host_gpu_test on the emulated GPU and by cuda_test on a real one.
#pragma once

#include "engine/device/precision.h"
#include "tests/layers/layer_cases.h"

namespace rk {

// Compares one layer's output, gradients of inputs and parameters, and running statistics; with
// batch statistics both by our own kernels and, as in tf32, by the library's graphs. Holds the
// gtest expectations.
void compare_with_cpu(const LayerCase& layer, const Context& gpu);

// The same of a layer of images in a 16-bit type, within some roundings of that type; the CPU
// computes with the same inputs in float32.
void compare_half_with_cpu(const LayerCase& layer, const Context& gpu, Precision precision);

// Puts NaN into one element of the first input: the output must be NaN exactly where the CPU's is,
// by our own kernels and by the library's graphs.
void compare_nan_with_cpu(const LayerCase& layer, const Context& gpu);

}  // namespace rk
