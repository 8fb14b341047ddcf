// The building block of networks: a convolution and its batch normalisation, optionally followed by
// a residual addition and ReLU; fused, or each layer a node of its own (NetworkSpec::fuse).
#pragma once

#include "layers/conv_bn.h"
#include "layers/networks/network.h"

namespace rk {

TensorId conv_bn_unit(Program& program, const NetworkSpec& spec, TensorId x,
                      const ConvBnNames& names, const Conv2dOptions& convolution,
                      BatchNormOptions batchnorm);

}  // namespace rk
