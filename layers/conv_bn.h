// Convolution and batch normalisation, optionally followed by a residual addition and ReLU.
//
// With running statistics (evaluation, frozen training) the normalisation is folded into the
// convolution, which then writes the final result itself: no further pass over memory is needed.
//   W'[o] = gamma[o] inv_std[o] W[o],  b'[o] = beta[o] - gamma[o] inv_std[o] mean[o]
//   backward, g = dy where y > 0:  dW = gamma inv_std dW',  dbeta = sum g,
//   dgamma = inv_std ( <dW', W> - mean dbeta )      per output channel, exact algebra
// so the convolution's own output is never stored. With batch statistics: conv2d, then batchnorm
// with the rest fused.
#pragma once

#include "layers/batchnorm.h"
#include "layers/conv2d.h"

namespace rk {

struct ConvBnNames {
  std::string convolution;  // "conv1"
  std::string batchnorm;    // "bn1"
  std::string output;       // name of the resulting tensor; empty: batchnorm's
};

TensorId conv_bn(Program& program, TensorId x, const ConvBnNames& names,
                 const Conv2dOptions& convolution, const BatchNormOptions& batchnorm);

}  // namespace rk
