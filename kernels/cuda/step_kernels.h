// The kernels at the two ends of a step and the element-wise ones that launch() is compiled for:
// X(kernel) for each.
#pragma once

#include "kernels/blocks/difference_block.h"
#include "kernels/blocks/elementwise_block.h"
#include "kernels/blocks/input_block.h"
#include "kernels/blocks/l2norm_block.h"
#include "kernels/blocks/matrix_block.h"
#include "kernels/blocks/optimizer_block.h"
#include "kernels/half_element.h"

#define RK_STEP_KERNELS_OF(X, T) \
  X(CopyOrAdd<T>);               \
  X(AddTensors<T>);              \
  X(Relu<T>);                    \
  X(ReluGradient<T>);            \
  X(FillInput<T>);               \
  X(SquaredDifferences<T>)

#define RK_STEP_KERNELS(X)         \
  RK_STEP_KERNELS_OF(X, float);    \
  RK_STEP_KERNELS_OF(X, Float16);  \
  RK_STEP_KERNELS_OF(X, Bfloat16); \
  X(Scale);                        \
  X(L2Norm);                       \
  X(L2NormGradient);               \
  X(FillRows);                     \
  X(ColumnSums<float, float>);     \
  X(SquareSums);                   \
  X(FinishNorm);                   \
  X(OptimizerStep)
