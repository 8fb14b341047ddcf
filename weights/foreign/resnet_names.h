// What others call the tensors of a ResNet, in torchvision's names.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace rk {

// Hugging Face transformers: "resnet.encoder.stages.0.layers.1.layer.2.normalization.bias" ->
// "layer1.1.bn3.bias". nullopt for what is no such name.
std::optional<std::string> name_of_transformers(const std::string& name);

// NVIDIA's examples: "layers.0.1.conv2.weight" -> "layer1.1.conv2.weight".
std::optional<std::string> name_of_nvidia(const std::string& name);

// A layer of Keras's ResNet-50, of either generation: {"layer1.0.conv2", "layer1.0.bn2"} for
// "conv2_block1_2_conv" and "res2a_branch2b", whichever of the two it is.
std::optional<std::string> name_of_keras_layer(const std::string& layer);

// Convolutions and normalisations of Keras's ResNet-50 in the order of its layers, by torchvision's
// names: what files without names of layers count by.
std::vector<std::string> keras_convolutions();
std::vector<std::string> keras_normalisations();

}  // namespace rk
