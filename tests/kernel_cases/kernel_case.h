// The kernels of kernels/launch.h against references in double that share no code with them: one
// list of cases, run by host_gpu_test on the emulated GPU and by cuda_test on a real one.
#pragma once

#include "engine/base/integers.h"
#include "engine/device/cuda/buffer.h"
#include "kernels/half_element.h"
#include "kernels/launch.h"

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace rk {

// One array that kernels wrote: |got - expected| must be <= absolute + relative |expected|; NaN
// matches only NaN.
struct Checked {
  std::string what;
  std::vector<double> got;
  std::vector<double> expected;
  double relative = 0;
  double absolute = 0;
};

struct KernelCase {
  std::string name;
  std::function<std::vector<Checked>()> run;
};

std::vector<KernelCase> kernel_cases();
void add_batchnorm_cases(std::vector<KernelCase>& cases);
void add_convolution_cases(std::vector<KernelCase>& cases);
void add_pool_cases(std::vector<KernelCase>& cases);
void add_step_cases(std::vector<KernelCase>& cases);
void add_optimizer_cases(std::vector<KernelCase>& cases);
void add_score_cases(std::vector<KernelCase>& cases);

// An element type's rounding error: half a unit in the last place, relative (kRounding), and half
// the smallest number, absolute (kDenormal).
template <class T> struct TypeFacts;
template <> struct TypeFacts<float> {
  static constexpr double kRounding = 0x1p-24;
  static constexpr double kDenormal = 0x1p-150;
  static constexpr const char* kName = "float";
};
template <> struct TypeFacts<Float16> {
  static constexpr double kRounding = 0x1p-11;
  static constexpr double kDenormal = 0x1p-25;
  static constexpr const char* kName = "half";
};
template <> struct TypeFacts<Bfloat16> {
  static constexpr double kRounding = 0x1p-8;
  static constexpr double kDenormal = 0x1p-134;
  static constexpr const char* kName = "bfloat16";
};

// Calls f.operator()<T>() for the three element types.
template <class F> void for_types(F&& f) {
  f.template operator()<float>();
  f.template operator()<Float16>();
  f.template operator()<Bfloat16>();
}

// Numbers of about unit size, the same for the same seed.
class MadeUp {
 public:
  explicit MadeUp(std::uint32_t seed) : state_(seed * 2654435761U + 1) {}
  double uniform() {  // [-1, 1)
    state_ = state_ * 1664525U + 1013904223U;
    return static_cast<double>(state_ >> 8) / (1 << 23) - 1;
  }
  double normal() { return uniform() + uniform() + uniform(); }
  template <class T> std::vector<T> normals(std::int64_t count, double mean = 0, double std = 1) {
    std::vector<T> out;
    out.reserve(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) {
      out.push_back(Element<T>::narrow(static_cast<float>(mean + std * normal())));
    }
    return out;
  }

 private:
  std::uint32_t state_;
};

template <class T> std::vector<double> widened(const std::vector<T>& values) {
  std::vector<double> out;
  out.reserve(values.size());
  for (const T& value : values) out.push_back(static_cast<double>(Element<T>::widen(value)));
  return out;
}
inline std::vector<double> widened(const std::vector<double>& values) { return values; }
template <class I>
requires std::is_integral_v<I> std::vector<double> widened(const std::vector<I>& values) {
  return std::vector<double>(values.begin(), values.end());
}

template <class T> std::vector<double> read(const DeviceBuffer& buffer) {
  return widened(buffer.values<T>());
}

// Stands for uninitialised memory: NaN in every type.
template <class T> DeviceBuffer unwritten(std::int64_t count) {
  return DeviceBuffer::copy_of(
      std::vector<unsigned char>(static_cast<std::size_t>(count) * sizeof(T), 0xFF));
}

}  // namespace rk
