// Writes a generated network to files as PyTorch, safetensors and Keras make them, and reads them
// back as `train --weights` and `convert` do. The cases of whole networks get their weights this
// way, so each of them also tests the conversion.
//
// Each container is a case of its own ("networks/weights/resnet50 torch zip"): all tensors must
// equal the generated ones in every bit. Keras's files hold values with biases, another epsilon and
// BGR that convert to the generated ones. Keras strides in another convolution of a block, so only
// the tensors of its ResNet-50 are compared.
#pragma once

#include "tests/golden_runner/golden.h"
#include "tests/support/goldens/golden_generator.h"
#include "weights/checkpoint.h"

#include <cstdint>
#include <memory>
#include <string>

namespace rk::golden {

class ConvertedWeights {
 public:
  // Returns the weights of `arch` with an embedding layer of `dim`. The last network is kept; any
  // other is made and its cases reported.
  const Checkpoint& of(const std::string& arch, std::int64_t dim, const Generator& generator,
                       Report& report);

 private:
  std::string made_;  // which network `weights_` is
  std::unique_ptr<Checkpoint> weights_;
};

}  // namespace rk::golden
