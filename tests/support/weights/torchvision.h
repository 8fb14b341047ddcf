// Names and shapes of the networks' state_dict() in torchvision, in its order, with `fc` of 1000
// classes and without auxiliary classifiers; of ResNet-20 as if torchvision had it. Written from
// torchvision's documented naming, independently of the product's own list.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rk::golden {

struct NamedShape {
  std::string name;
  std::vector<std::int64_t> dims;  // empty: num_batches_tracked
};

std::vector<NamedShape> torchvision_network(const std::string& arch);

}  // namespace rk::golden
