// Translates other libraries' names of a ResNet's tensors into torchvision's names.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace rk {

// Hugging Face transformers: "resnet.encoder.stages.0.layers.1.layer.2.normalization.bias" ->
// "layer1.1.bn3.bias". nullopt if it is not such a name.
std::optional<std::string> name_of_transformers(const std::string& name);

// NVIDIA's examples: "layers.0.1.conv2.weight" -> "layer1.1.conv2.weight".
std::optional<std::string> name_of_nvidia(const std::string& name);

// A layer of Keras's ResNet-50, of either generation: "conv2_block1_2_conv" and "res2a_branch2b" ->
// "layer1.0.conv2"; "conv2_block1_2_bn" and "bn2a_branch2b" -> "layer1.0.bn2".
std::optional<std::string> name_of_keras_layer(const std::string& layer);

// The convolutions and normalisations of Keras's ResNet-50 in layer order, by torchvision's names;
// files without layer names number their layers in this order.
std::vector<std::string> keras_convolutions();
std::vector<std::string> keras_normalisations();

}  // namespace rk
