// Batch normalisation over (N, H, W) for each channel, optionally with a residual addition and ReLU
// fused after it (passes and formulas: kernels/cpu/batchnorm.h).
//
//   kBatch    normalises by the statistics of the batch (variance with n);
//             running = (1-m) running + m batch, the variance there with n-1, as PyTorch does;
//             num_batches_tracked counts.
//   kRunning  normalises by the running statistics, which do not change: evaluation, and "frozen"
//             training, where gamma and beta still learn.
// Parameters <name>.weight (gamma, starts at 1) and <name>.bias (beta, 0); buffers
// <name>.running_mean, <name>.running_var, counter <name>.num_batches_tracked.
#pragma once

#include "engine/tape/program.h"
#include "layers/batchnorm_mode.h"

#include <cstdint>

namespace rk {

struct BatchNormOptions {
  BatchNormMode mode = BatchNormMode::kBatch;
  double epsilon = 1e-5;
  double momentum = 0.1;
  bool relu = false;
  TensorId residual = -1;  // added before ReLU; same shape and layout as x
};

TensorId batchnorm(Program& program, TensorId x, const std::string& name,
                   const BatchNormOptions& options, const std::string& output_name = "");

// relu( batchnorm(x) + batchnorm(shortcut) ), the end of a residual block whose shortcut has a
// convolution, as one node: on a GPU, in training with batch statistics, it moves half the bytes of
// two separate nodes. name, shortcut_name: the names of the two normalisations.
bool joins_batchnorms(const Program& program, BatchNormMode mode);  // whether that node exists
TensorId joined_batchnorm(Program& program, TensorId x, const std::string& name, TensorId shortcut,
                          const std::string& shortcut_name, const BatchNormOptions& options,
                          const std::string& output_name);

// The tensors of one batch normalisation, shared with conv_bn.h.
struct BatchNormTensors {
  ParameterId gamma, beta;
  BufferId mean, variance, count;
};
BatchNormTensors declare_batchnorm(Program& program, const std::string& name,
                                   std::int64_t channels);

}  // namespace rk
