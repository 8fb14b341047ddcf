// Copies a program's tensors of any type to and from floats on the host, wherever the program runs;
// images on the host as NHWC.
#pragma once

#include "engine/tape/program.h"

#include <vector>

namespace rk {

// Rounds to the tensor's type.
void write(const Program& program, TensorId id, const Tensor& to, const std::vector<float>& given);

std::vector<float> read(const Program& program, TensorId id, const Tensor& from);

std::vector<float> rounded_to(DType type, const std::vector<float>& values);

}  // namespace rk
