// An optimizer's hyper-parameters (formulas: training/optimizer.h), free of host code so that
// kernels can include them.
#pragma once

#include <cstdint>

namespace rk {

enum class OptimizerKind { kAdam, kAdamW, kSgd };

struct OptimizerParams {
  OptimizerKind kind = OptimizerKind::kAdam;
  double beta1 = 0.9;     // Adam, AdamW
  double beta2 = 0.999;   // Adam, AdamW
  double eps = 1e-8;      // Adam, AdamW
  double momentum = 0.0;  // SGD
  bool nesterov = false;  // SGD
  // A longer gradient is scaled down to this length; 0: no clipping.
  double clip_norm = 0.0;
};

struct OptimizerGroup {
  std::int64_t begin = 0;  // [begin, end) of the flat buffers
  std::int64_t end = 0;
  double rate_factor = 1.0;
  double weight_decay = 0.0;
};

}  // namespace rk
