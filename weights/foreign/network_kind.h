// Which network a file's tensors make up, by their names, torchvision's, and their shapes.
#pragma once

#include "weights/architectures/network_tensors.h"
#include "weights/tensor_files/tensor_file.h"

#include <map>
#include <string>
#include <vector>

namespace rk {

using NamedTensors = std::map<std::string, const StoredTensor*>;

// Tensors that every ResNet has, and that GoogLeNet and Inception-v3 have.
inline constexpr const char* kOfResNet = "layer1.0.conv1.weight";
inline constexpr const char* kOfGoogLeNet = "inception3a.branch1.conv.weight";
inline constexpr const char* kOfInception = "Mixed_5b.branch1x1.conv.weight";

// The network of weights/architectures/registry.h. `wanted`: the one named by the user, or empty.
// Throws InputError if it is another or none. If the network cannot be detected but may be a
// damaged `wanted`, `wanted` is returned, so that its missing tensors are named later.
std::string architecture(const TensorFile& file, const NamedTensors& tensors,
                         const std::string& wanted);

// The name of a convolution's bias. No network here has one, but it can go into the mean of the
// normalisation that follows.
std::string bias_of(const NetworkTensor& convolution);

// Names of tensors inside the network's own modules ("layer1.0.attention.weight") that it does not
// have, so that without them another network would be computed.
std::vector<std::string> further_parts(const NamedTensors& tensors, const std::string& arch);

// Whether this is a network of the registry, `wanted` unless that is empty, with all of its tensors
// and no further parts.
bool is_whole_network(const NamedTensors& tensors, const std::string& wanted);

}  // namespace rk
