// The unit of Szegedy et al.'s networks as torchvision names it ("BasicConv2d"): convolution, batch
// normalisation with epsilon 1e-3, ReLU. <name>.conv and <name>.bn hold the parameters; the result
// is <name>.
#pragma once

#include "engine/device/precision.h"
#include "layers/networks/conv_bn_unit.h"

namespace rk {

struct Kernel {
  std::array<std::int64_t, 2> size{1, 1};  // height, width
  std::array<std::int64_t, 2> padding{0, 0};
  std::int64_t stride = 1;
};

class BasicConv2d {
 public:
  BasicConv2d(Program& program, const NetworkSpec& spec) : program_(program), spec_(spec) {}

  Program& program() const { return program_; }
  TensorId operator()(TensorId x, const std::string& name, std::int64_t channels,
                      const Kernel& kernel = {}) const {
    return conv_bn_unit(program_, spec_, x, {name + ".conv", name + ".bn", name},
                        {channels, kernel.size, {kernel.stride, kernel.stride}, kernel.padding},
                        {.epsilon = kEpsilon, .relu = true});
  }
  // The network's first unit, whose input may have channels of zeros besides the colours.
  TensorId first(TensorId images, const std::string& name, std::int64_t channels,
                 const Kernel& kernel) const {
    return conv_bn_unit(
        program_, spec_, images, {name + ".conv", name + ".bn", name},
        {channels, kernel.size, {kernel.stride, kernel.stride}, kernel.padding, kColours},
        {.epsilon = kEpsilon, .relu = true});
  }

 private:
  static constexpr double kEpsilon = 1e-3;
  Program& program_;
  const NetworkSpec& spec_;
};

}  // namespace rk
