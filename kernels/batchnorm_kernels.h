// The kernels of batch normalisation that launch() is compiled for: X(kernel) for each.
#pragma once

#include "kernels/batchnorm_gradient_block.h"
#include "kernels/half_element.h"

#define RK_BATCHNORM_KERNELS_OF(X, T) \
  X(BatchNormSums<T>);                \
  X(BatchNormApply<T>);               \
  X(BatchNormGradientSums<T>);        \
  X(BatchNormGradientApply<T>)

#define RK_BATCHNORM_KERNELS(X)              \
  RK_BATCHNORM_KERNELS_OF(X, float);         \
  RK_BATCHNORM_KERNELS_OF(X, __half);        \
  RK_BATCHNORM_KERNELS_OF(X, __nv_bfloat16); \
  X(BatchNormStatistics);                    \
  X(BatchNormStatisticsOfSums);              \
  X(BatchNormRunning);                       \
  X(BatchNormGradientFactors)
