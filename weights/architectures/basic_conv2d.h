// The unit of Szegedy et al.'s networks as torchvision names it ("BasicConv2d"): convolution, batch
// normalisation with epsilon 1e-3, ReLU. <name>.conv and <name>.bn hold the parameters; the result
// is <name>.
#pragma once

#include "weights/architectures/backbone.h"

#include <cstdint>

namespace rk {

inline LayerId basic_conv2d(Backbone& net, LayerId x, const std::string& name,
                            std::int64_t channels, const Window& window = {}) {
  return net.add(ConvBn{.name = name,
                        .convolution = name + ".conv",
                        .batchnorm = name + ".bn",
                        .x = x,
                        .channels = channels,
                        .window = window,
                        .epsilon = 1e-3});
}

inline constexpr Window k3x3{.size = {3, 3}, .padding = {1, 1}};

}  // namespace rk
