// A generated network as people would have it: written as the files that PyTorch, safetensors and
// Keras make, and taken in again as `train --weights` and `convert` do. Whole networks get their
// weights this way, so that every case of theirs is one through converted files.
//
// Each container is a case of its own ("networks/weights/resnet50 torch zip"): all tensors equal
// in every bit what was generated. Keras's files hold what its algebra turns into these: biases,
// another epsilon, BGR. It strides elsewhere, so of its ResNet-50 the tensors alone are compared.
#pragma once

#include "tests/golden_runner/golden.h"
#include "tests/support/golden_generator.h"
#include "weights/checkpoint.h"

#include <memory>
#include <string>

namespace rk::golden {

class ConvertedWeights {
 public:
  // Of `arch` with an embedding layer of `dim`. Made and reported where it is another than the
  // last one that was asked for; that one is kept.
  const Checkpoint& of(const std::string& arch, std::int64_t dim, const Generator& generator,
                       Report& report);

 private:
  std::string made_;  // which network `weights_` is
  std::unique_ptr<Checkpoint> weights_;
};

}  // namespace rk::golden
