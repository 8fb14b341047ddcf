#include "layers/networks/conv_bn_unit.h"

#include "layers/activation.h"

#include <utility>

namespace rk {

TensorId conv_bn_unit(Program& program, const NetworkSpec& spec, TensorId x,
                      const ConvBnNames& names, const Conv2dOptions& convolution,
                      BatchNormOptions batchnorm_options) {
  batchnorm_options.mode = spec.batchnorm;
  if (spec.fuse) return conv_bn(program, x, names, convolution, batchnorm_options);
  const TensorId residual = std::exchange(batchnorm_options.residual, -1);
  const bool activate = std::exchange(batchnorm_options.relu, false);
  TensorId y = batchnorm(program, conv2d(program, x, names.convolution, convolution),
                         names.batchnorm, batchnorm_options);
  if (residual >= 0) y = add(program, y, residual, names.batchnorm + ".add");
  if (activate) y = relu(program, y, names.output);
  return y;
}

}  // namespace rk
