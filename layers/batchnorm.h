// Batch normalisation over (N, H, W) for each channel, optionally with a residual addition and ReLU
// fused behind it (kernels/cpu/batchnorm_cpu.h has the passes and the formulas).
//
//   kBatch    statistics of the batch normalise (variance with n);
//             running = (1-m) running + m batch, the variance there with n-1, as PyTorch does;
//             num_batches_tracked counts.
//   kRunning  running statistics normalise and stay as they are: evaluation, and "frozen" training,
//             where gamma and beta still learn.
// Parameters <name>.weight (gamma, starts at 1) and <name>.bias (beta, 0); buffers
// <name>.running_mean, <name>.running_var, counter <name>.num_batches_tracked.
#pragma once

#include "engine/tape/program.h"

namespace rk {

enum class BatchNormMode : std::uint8_t { kBatch, kRunning };

struct BatchNormOptions {
  BatchNormMode mode = BatchNormMode::kBatch;
  double epsilon = 1e-5;
  double momentum = 0.1;
  bool relu = false;
  TensorId residual = -1;  // added before ReLU; same shape and layout as x
};

TensorId batchnorm(Program& program, TensorId x, const std::string& name,
                   const BatchNormOptions& options, const std::string& output_name = "");

// relu( batchnorm(y) + batchnorm(shortcut) ), the end of a residual block whose shortcut has a
// convolution, in one: on a GPU, in training with the batch's statistics, it moves half the bytes
// of the two apart. name, shortcut_name: of the two normalisations.
bool joins_batchnorms(const Program& program, BatchNormMode mode);  // whether there is that one
TensorId joined_batchnorm(Program& program, TensorId y, const std::string& name, TensorId shortcut,
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
