// What an optimizer's step needs and leaves behind, free of host code so that kernels can include
// it (kernels/blocks/optimizer_block.h).
#pragma once

#include <cstdint>

namespace rk {

// One step's numbers, in the memory of the device that makes it. The host writes `rate` before a
// step; the rest it sets once and may read after a step.
struct StepState {
  static constexpr float kLargestScale = 16777216.0F;  // 2^24
  static constexpr std::int64_t kGrowthSteps = 2000;
  // Updates skipped in a row before a halt: halved 24 times, the largest scale is 1, the least one.
  static constexpr std::int64_t kMostSkipped = 25;
  // Of a gradient whose squares, which Adam keeps, float32 can hold.
  static constexpr double kLargestNorm = 1e19;

  double rate = 0;
  std::int64_t number = 0;  // updates made: t of the last one
  float loss_scale = 1;     // of the next step: multiplies its gradient
  bool dynamic_scale = false;

  // Written by finish_norm().
  bool finite = true;  // loss and gradient of this step, of at most kLargestNorm: it is an update
  std::int64_t good_steps = 0;   // finite steps in a row since the scale last changed
  std::int64_t skipped = 0;      // updates skipped in a row
  bool halted = false;           // permanently
  double norm = 0;               // of the gradient without the scale
  float gradient_factor = 1;     // 1 / the scale of this step's gradient, and smaller if clipped
  double first_correction = 1;   // 1 - beta1^t
  double second_correction = 1;  // sqrt(1 - beta2^t)
};

}  // namespace rk
