// The kernels of batch normalisation that launch() is compiled for: X(kernel) for each.
#pragma once

#include "kernels/blocks/batchnorm_gradient_block.h"
#include "kernels/blocks/batchnorm_join_block.h"
#include "kernels/half_element.h"

#define RK_BATCHNORM_KERNELS_OF(X, T)                                            \
  X(BatchNormSums<T>);                                                           \
  X(BatchNormApply<T, false>);                                                   \
  X(BatchNormApply<T, true>);                                                    \
  X(BatchNormGradientSums<T, ReluMask::kNone, GradientWrite::kNone>);            \
  X(BatchNormGradientSums<T, ReluMask::kNone, GradientWrite::kOverwrite>);       \
  X(BatchNormGradientSums<T, ReluMask::kNone, GradientWrite::kAdd>);             \
  X(BatchNormGradientSums<T, ReluMask::kFromSigns, GradientWrite::kNone>);       \
  X(BatchNormGradientSums<T, ReluMask::kFromSigns, GradientWrite::kOverwrite>);  \
  X(BatchNormGradientSums<T, ReluMask::kFromSigns, GradientWrite::kAdd>);        \
  X(BatchNormGradientSums<T, ReluMask::kFromInput, GradientWrite::kNone>);       \
  X(BatchNormGradientApply<T, ReluMask::kNone, GradientWrite::kOverwrite>);      \
  X(BatchNormGradientApply<T, ReluMask::kNone, GradientWrite::kAdd>);            \
  X(BatchNormGradientApply<T, ReluMask::kFromInput, GradientWrite::kOverwrite>); \
  X(BatchNormGradientApply<T, ReluMask::kFromInput, GradientWrite::kAdd>);       \
  X(BatchNormGradientApply<T, ReluMask::kFromSigns, GradientWrite::kOverwrite>); \
  X(BatchNormGradientApply<T, ReluMask::kFromSigns, GradientWrite::kAdd>);       \
  X(BatchNormJoin<T>);                                                           \
  X(BatchNormJoinGradientSums<T>);                                               \
  X(BatchNormJoinGradientApply<T>)

#define RK_BATCHNORM_KERNELS(X)         \
  RK_BATCHNORM_KERNELS_OF(X, float);    \
  RK_BATCHNORM_KERNELS_OF(X, Float16);  \
  RK_BATCHNORM_KERNELS_OF(X, Bfloat16); \
  X(BatchNormStatistics);               \
  X(BatchNormStatisticsOfSums);         \
  X(BatchNormRunning);                  \
  X(BatchNormGradientFactors)
