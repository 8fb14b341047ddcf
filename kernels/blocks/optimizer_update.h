// What an optimizer does to one parameter, with the same roundings on both devices: formulas in
// training/optimizer.h. A group's numbers are computed in double and rounded once; `g` is an
// element of the gradient, still multiplied by the loss scale.
#pragma once

#include "kernels/blocks/optimizer_params.h"
#include "kernels/blocks/step_state.h"
#include "kernels/team.h"

#include <cmath>

namespace rk {

struct Roots {
  RK_FN RK_INLINE static float root(float x) { return std::sqrt(x); }
  RK_FN RK_INLINE static float quotient(float x, float y) { return x / y; }
};

// The same for finite x >= 0 and y > 0. On a GPU the exact root or quotient of 0 takes the slow
// path for denormals, and most of a gradient may be 0. So lanes with 0 compute the root of 1, or
// y / y, and return 0.
struct RootsAroundZero {
  RK_FN RK_INLINE static float root(float x) {
    const bool zero = x == 0;
    const float result = std::sqrt(zero ? 1.0F : x);
    return zero ? 0.0F : result;
  }
  RK_FN RK_INLINE static float quotient(float x, float y) {
    const bool zero = x == 0;
    const float result = (zero ? y : x) / y;
    return zero ? 0.0F : result;
  }
};

struct AdamUpdate {
  float factor, decay, keep, one_minus_beta1, beta2, one_minus_beta2, step_size, root_correction,
      eps;

  RK_FN RK_INLINE static AdamUpdate of(const OptimizerParams& params, const OptimizerGroup& group,
                                       const StepState& step) {
    const double rate = step.rate * group.rate_factor;
    const bool decoupled = params.kind == OptimizerKind::kAdamW;
    return {
        .factor = step.gradient_factor,
        .decay = decoupled ? 0.0F : static_cast<float>(group.weight_decay),
        .keep = decoupled ? static_cast<float>(1.0 - rate * group.weight_decay) : 1.0F,
        .one_minus_beta1 = static_cast<float>(1.0 - params.beta1),
        .beta2 = static_cast<float>(params.beta2),
        .one_minus_beta2 = static_cast<float>(1.0 - params.beta2),
        .step_size = static_cast<float>(rate / step.first_correction),
        .root_correction = static_cast<float>(step.second_correction),
        .eps = static_cast<float>(params.eps),
    };
  }

  // R: Roots or RootsAroundZero.
  template <class R>
  RK_FN RK_INLINE void apply(float g, float& parameter, float& first, float& second) const {
    const float gradient = g * factor + decay * parameter;
    first += one_minus_beta1 * (gradient - first);
    second = beta2 * second + one_minus_beta2 * (gradient * gradient);
    const float length = R::quotient(R::root(second), root_correction) + eps;
    parameter = parameter * keep - step_size * R::quotient(first, length);
  }
};

struct SgdUpdate {
  float factor, decay, momentum, rate;
  bool nesterov;

  RK_FN RK_INLINE static SgdUpdate of(const OptimizerParams& params, const OptimizerGroup& group,
                                      const StepState& step) {
    return {.factor = step.gradient_factor,
            .decay = static_cast<float>(group.weight_decay),
            .momentum = static_cast<float>(params.momentum),
            .rate = static_cast<float>(step.rate * group.rate_factor),
            .nesterov = params.nesterov};
  }

  RK_FN RK_INLINE void plain(float g, float& parameter) const {
    parameter -= rate * (g * factor + decay * parameter);
  }
  RK_FN RK_INLINE void with_momentum(float g, float& parameter, float& buffer) const {
    const float direction = g * factor + decay * parameter;
    buffer = momentum * buffer + direction;
    parameter -= rate * (nesterov ? direction + momentum * buffer : buffer);
  }
};

}  // namespace rk
