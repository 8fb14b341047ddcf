// The networks by name. Those that torchvision has are built as torchvision builds them, and all
// carry its names of layers and parameters.
#pragma once

#include "weights/architectures/backbone.h"

#include <cstdint>

namespace rk {

const std::vector<std::string>& network_names();
// In words: "resnet20, resnet18, ... and inception_v3".
std::string known_networks();
bool is_known_network(const std::string& arch);

// The functions below throw UsageError if there is no such network.

// stride_in_1x1 is resnet50's alone.
Backbone backbone(const std::string& arch, bool stride_in_1x1 = false);

// The number of channels of the pooled features.
std::int64_t network_features(const std::string& arch);

// A network's stages in order from the images, with the prefixes of their parameters' names.
struct Stage {
  std::string name;
  std::vector<std::string> beginnings;
};
const std::vector<Stage>& network_stages(const std::string& arch);

// The side of the square images that the network was designed for.
std::int64_t native_image_size(const std::string& arch);
// The short side that a picture is resized to before its middle `image_size` pixels are cut out:
// 256 for ImageNet's 224, and likewise for other sizes.
std::int64_t default_resize(std::int64_t image_size);
// The side of the smallest images that the network takes.
std::int64_t least_image_size(const std::string& arch);

}  // namespace rk
