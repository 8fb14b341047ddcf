// Names and shapes of torchvision's networks' state_dict(), in its order, with `fc` of 1000 classes
// and without auxiliary classifiers. Written from torchvision's documented naming, apart from the
// product's own list.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rk::golden {

struct NamedShape {
  std::string name;
  std::vector<std::int64_t> dims;  // empty: num_batches_tracked
};

std::vector<NamedShape> torchvision_resnet(bool bottleneck);  // false: resnet18, true: resnet50
std::vector<NamedShape> torchvision_network(const std::string& arch);

}  // namespace rk::golden
