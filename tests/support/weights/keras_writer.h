// Writes ResNet-50 as Keras saves it, under the names of every generation, without Keras: the same
// groups, data sets and orders of elements.
#pragma once

#include "weights/hdf5/file.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace rk {

// In this order: fchollet's files; keras-applications' (a whole model); that model inside another,
// as Sequential([ResNet50(), ...]) saves it; .weights.h5 of Keras 3, whose variables are numbered,
// with the layers' names and without, and without them inside another model.
enum class KerasGeneration {
  kFirst,
  kSecond,
  kSecondInside,
  kThirdNamed,
  kThirdCounted,
  kThirdCountedInside
};

// A convolution with its normalisation: its place in Keras's model, its names in torchvision.
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

// `further` writes more into the file.
std::vector<std::byte> keras_resnet50(
    KerasGeneration generation, const KerasValues& values,
    const std::function<void(Hdf5Writer&)>& further = [](Hdf5Writer&) {});

}  // namespace rk
