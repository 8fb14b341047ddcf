// Keras's ResNet-50 as Keras saves it, of every generation of names, made without Keras: the same
// groups, data sets and orders of elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace rk {

// fchollet's files; keras-applications' (a whole model); the same inside another model, as
// Sequential([ResNet50(), ...]) saves it; .weights.h5 of Keras 3, whose variables have numbers,
// with and without the layers' names.
enum class KerasGeneration { kFirst, kSecond, kSecondInside, kThirdNamed, kThirdCounted };

// A convolution with its normalisation: where it is in Keras, and what it is called by torchvision.
struct KerasLayer {
  int stage = 1, block = 0, number = 1;  // number 0: the shortcut; stage 1: the stem
  std::string convolution, normalisation;
  std::int64_t in = 3, out = 64, side = 7;
};

// In the order of Keras's model.layers.
std::vector<KerasLayer> keras_layers();

// The values of a part ("kernel", "bias", "gamma", "beta", "mean", "variance") of torchvision's
// layer, in C order of these dims (kernels HWIO).
using KerasValues = std::function<std::vector<float>(
    const std::string& layer, const std::string& part, const std::vector<std::int64_t>& dims)>;

std::vector<std::byte> keras_resnet50(KerasGeneration generation, const KerasValues& values);

}  // namespace rk
