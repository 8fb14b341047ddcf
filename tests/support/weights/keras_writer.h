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

enum class KerasGeneration {
  kFirst,          // fchollet's files
  kFirstNumbered,  // the same layers saved by Keras 2 on TensorFlow 1: "conv1/conv1_1/kernel:0"
  kSecond,         // keras-applications', a whole model
  kSecondInside,   // that model inside another, as Sequential([ResNet50(), ...]) saves it
  kThirdNamed,     // .weights.h5, whose variables are numbered, with the layers' names
  kThirdCounted,   // without names, as Keras 2.15 and the first Keras 3 save it
  kThirdCountedInside,  // the same inside another model
  kDependencies,        // of Keras 2.14
  kDoubledInside,       // of Keras 2.12 and 2.13, inside another model: every second number
  kDoubledOnWindows     // the same, not inside another
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
