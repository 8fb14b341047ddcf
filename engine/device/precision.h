// The precisions of training and evaluation on a GPU (`--precision`). Parameters, statistics, sums
// and losses are float32 in all of them.
#pragma once

#include "engine/base/colours.h"
#include "engine/base/half.h"

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rk {

enum class Precision : std::uint8_t {
  kFp32,  // activations float32, every product in float32
  kTf32,  // activations float32, products on tensor cores with 10 bits of mantissa
  kFp16,  // activations float16, accumulated in float32
  kBf16,  // activations bfloat16, accumulated in float32
};

inline constexpr std::array<Precision, 4> kPrecisions = {Precision::kFp32, Precision::kTf32,
                                                         Precision::kFp16, Precision::kBf16};

constexpr std::string_view name_of(Precision precision) {
  switch (precision) {
    case Precision::kFp32: return "fp32";
    case Precision::kTf32: return "tf32";
    case Precision::kFp16: return "fp16";
    case Precision::kBf16: return "bf16";
  }
  return "";
}

// All of them, as flags take them.
inline std::vector<std::string> precision_names() {
  std::vector<std::string> names;
  for (const Precision precision : kPrecisions) names.emplace_back(name_of(precision));
  return names;
}

// The precision with this name, one of precision_names().
constexpr Precision precision_of(std::string_view name) {
  for (const Precision precision : kPrecisions) {
    if (name_of(precision) == name) return precision;
  }
  throw std::invalid_argument("no such precision");
}

// The type of images between layers and of the weights that convolutions read.
constexpr DType image_type(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
    case Precision::kTf32: return DType::kFloat32;
    case Precision::kFp16: return DType::kFloat16;
    case Precision::kBf16: return DType::kBfloat16;
  }
  return DType::kFloat32;
}

// Calls f.operator()<T>() with the C++ type of an image type.
template <class F> auto with_type(DType type, F&& f) {
  switch (type) {
    case DType::kFloat16: return f.template operator()<Float16>();
    case DType::kBfloat16: return f.template operator()<Bfloat16>();
    default: return f.template operator()<float>();
  }
}
template <class F> auto with_image_type(Precision precision, F&& f) {
  return with_type(image_type(precision), std::forward<F>(f));
}

// Channels of the images that the first layer reads on a GPU: the colours, or as many as the
// fastest kernels require, the extra ones zero.
constexpr std::int64_t image_channels(Precision precision) {
  switch (precision) {
    case Precision::kFp32: return kColours;
    case Precision::kTf32:
    case Precision::kFp16: return 4;
    case Precision::kBf16: return 8;
  }
  return kColours;
}

}  // namespace rk
