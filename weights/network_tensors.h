// The name and shape of every tensor of each network, in the order of torchvision's state_dict(),
// without the classifiers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rk {

struct NetworkTensor {
  enum class Kind : std::uint8_t { kConvolution, kScale, kShift, kMean, kVariance, kCounter };

  std::string name;
  std::vector<std::int64_t> dims;  // OIHW, [C], or a scalar
  Kind kind = Kind::kConvolution;
};

// The networks' names, in words: "resnet20, resnet18, ... and inception_v3".
std::string known_networks();
bool is_known_network(const std::string& arch);

// The tensors of one of these networks.
std::vector<NetworkTensor> network_tensors(const std::string& arch);

// The number of channels of the pooled features.
std::int64_t network_features(const std::string& arch);

}  // namespace rk
