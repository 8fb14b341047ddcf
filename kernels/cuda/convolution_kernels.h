// The kernels around convolutions that launch() is compiled for, X(kernel) for each: weights,
// folded batch normalisation, pooling.
#pragma once

#include "kernels/blocks/average_pool_block.h"
#include "kernels/blocks/elementwise_block.h"
#include "kernels/blocks/folded_block.h"
#include "kernels/blocks/global_pool_block.h"
#include "kernels/blocks/max_pool_block.h"
#include "kernels/blocks/weights_block.h"
#include "kernels/half_element.h"

#define RK_CONVOLUTION_KERNELS_OF(X, T) \
  X(AddBiasAndRelu<T>);                 \
  X(MaskedSums<T>);                     \
  X(FoldedGradients<T>);                \
  X(PrepareWeights<T>);                 \
  X(WidenGradients<T>);                 \
  X(MaxPool<T>);                        \
  X(MaxPoolGradient<T>);                \
  X(AveragePool<T>);                    \
  X(AveragePoolGradient<T>);            \
  X(CopyChannels<T>);                   \
  X(GlobalPool<T>);                     \
  X(GlobalPoolGradient<T>)

#define RK_CONVOLUTION_KERNELS(X)        \
  RK_CONVOLUTION_KERNELS_OF(X, float);   \
  RK_CONVOLUTION_KERNELS_OF(X, Float16); \
  RK_CONVOLUTION_KERNELS_OF(X, Bfloat16)
