// The name and shape of every tensor of each network, in the order of torchvision's state_dict(),
// without the classifiers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rk {

struct NetworkTensor {
  enum class Kind : std::uint8_t { kConvolution, kScale, kShift, kMean, kVariance, kCounter };

  std::string name;
  std::vector<std::int64_t> dims;  // OIHW, [C], or a scalar
  Kind kind = Kind::kConvolution;
};

// The tensors of a network of weights/architectures/registry.h.
std::vector<NetworkTensor> network_tensors(const std::string& arch);

}  // namespace rk
