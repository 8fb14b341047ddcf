// What is needed to rebuild a network and to prepare its input, with the limits that hold wherever
// it comes from: a flag, a checkpoint, another program's file.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace rk {

// The largest embedding dimension, and the largest side that pictures are resized to.
inline constexpr int kMostDim = 65536, kMostSide = 8192;
// Limits of input_mean and input_std for pixels in 0..1: far beyond any sensible value, and far
// from the limits of float32.
inline constexpr double kMostInput = 1e6, kLeastInputStd = 1e-6;

// Limits of gem_p. The gradient raises a rounded quotient to p - 1, which multiplies its error by
// p, and a GPU takes the power 1/p of a mean of float32: beyond these limits digits are lost, and
// the pooling is as good as the maximum, or the geometric mean.
inline constexpr double kLeastGemP = 0.01, kMostGemP = 1000;

struct ModelDescription {
  std::string arch = "resnet50";
  std::string pool = "avg";
  double gem_p = 3.0;
  std::int64_t dim = 512;  // of the embedding; 0: no embedding layer, outputs pooled features
  bool stride_in_1x1 = false;
  // Of values divided by input_scale: ImageNet's, as torchvision's weights expect.
  std::array<double, 3> input_mean = {0.485, 0.456, 0.406};
  std::array<double, 3> input_std = {0.229, 0.224, 0.225};
  double input_scale = 255.0;
  std::string channel_order = "RGB";
  std::int64_t resize = 256;               // short side before the centre crop
  bool stretch = false;                    // both sides become `resize`, whatever the shape
  std::string interpolation = "bilinear";  // of the resize, with antialiasing
  std::int64_t crop = 224;
  bool upright = false;       // pictures are turned according to their EXIF orientation
  std::string source_sha256;  // of the run's initial weights; empty: from scratch

  bool operator==(const ModelDescription&) const = default;
};

// Throws InputError "<path>: ..." unless such a network can be built and fed.
void check_model(const ModelDescription& model, const std::string& path);

}  // namespace rk
