// Fully connected layer:  x (N, K) -> y (N, M) = x W^T + b, all of it in float32, on a GPU
// never in TF32.
// Parameters <name>.weight [M, K] and <name>.bias [M], initialised as PyTorch's nn.Linear (uniform
// in +-1/sqrt(K)), or with orthonormal rows and zero bias.
#pragma once

#include "engine/tape/program.h"

#include <cstdint>

namespace rk {

struct LinearOptions {
  std::int64_t out_features = 0;
  bool bias = true;
  bool orthogonal = false;
  ParameterGroup group = ParameterGroup::kBackbone;
};

TensorId linear(Program& program, TensorId x, const std::string& name,
                const LinearOptions& options);

}  // namespace rk
