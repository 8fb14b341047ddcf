#include "tests/support/weights/torch_network.h"

#include "tests/support/weights/repeated.h"
#include "weights/architectures/registry.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace rk {

std::vector<float> made_up_values(const NetworkTensor& tensor) {
  std::size_t count = 1;
  for (const std::int64_t d : tensor.dims) count *= static_cast<std::size_t>(d);
  std::vector<float> period(std::min<std::size_t>(count, 7919));
  const std::size_t first = std::hash<std::string>()(tensor.name) % 1000;
  const bool convolution = tensor.kind == NetworkTensor::Kind::kConvolution;
  for (std::size_t i = 0; i < period.size(); ++i) {
    const auto at = static_cast<float>(first + i);
    period[i] = convolution ? 0.05F * std::sin(at) : 1 + at / 8192;
  }
  return repeated(period, count);
}

TorchContent torch_network(const std::string& arch, std::int64_t classes) {
  return torch_network(
      arch, [](const std::string& name) { return name; }, classes);
}

TorchContent torch_network(const std::string& arch, const Rename& rename, std::int64_t classes) {
  TorchContent content;
  for (const NetworkTensor& tensor : network_tensors(arch)) {
    if (tensor.kind == NetworkTensor::Kind::kCounter) {
      add_counter(content, rename(tensor.name), kMadeUpCount);
    } else {
      add_tensor(content, rename(tensor.name), tensor.dims, made_up_values(tensor));
    }
  }
  if (classes > 0) {
    const std::int64_t features = network_features(arch);
    add_tensor(content, rename("fc.weight"), {classes, features},
               std::vector<float>(static_cast<std::size_t>(classes * features), 0.5F));
    std::vector<float> bias(static_cast<std::size_t>(classes));
    std::iota(bias.begin(), bias.end(), 1.0F);
    add_tensor(content, rename("fc.bias"), {classes}, bias);
  }
  return content;
}

}  // namespace rk
