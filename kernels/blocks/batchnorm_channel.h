// What batch normalisation has in common on both devices: what it computes once a channel, in
// double, and how its backward pass finds what ReLU passed. Source: Ioffe and Szegedy 2015,
// algorithm 1; running statistics as in PyTorch.
#pragma once

#include "kernels/team.h"

#include <cmath>
#include <cstdint>

namespace rk {

// Where ReLU passed the value: everywhere (there is none); where x, normalised again, is positive;
// where the sign bit is set.
enum class ReluMask : std::uint8_t { kNone, kFromInput, kFromSigns };

// squares: sum of the squared deviations of `count` values from their mean; rounding may leave less
// than zero. Not by std::max: NaN must stay NaN.
RK_BOTH inline float biased_variance(double squares, double count) {
  return static_cast<float>(squares < 0 ? 0.0 : squares / count);
}

RK_BOTH inline double inverse_deviation(float variance, double epsilon) {
  return 1.0 / std::sqrt(static_cast<double>(variance) + epsilon);
}

// running = (1 - momentum) running + momentum batch, for a batch of `count` values a channel.
struct RunningUpdate {
  double count = 0;
  double momentum = 0.1;

  RK_BOTH float mean(float running, float batch) const {
    return static_cast<float>((1 - momentum) * static_cast<double>(running) +
                              momentum * static_cast<double>(batch));
  }
  // The running variance divides by count - 1, `biased` by count.
  RK_BOTH float variance(float running, float biased) const {
    const double unbiased = count > 1 ? count / (count - 1) : 1.0;
    return static_cast<float>((1 - momentum) * static_cast<double>(running) +
                              momentum * unbiased * static_cast<double>(biased));
  }
};

// The gradients of a channel's parameters, and dx = a g + b + c (x - mean).
struct BatchNormFactors {
  float d_gamma, d_beta, a, b, c;
};

// sum: of g, the gradient behind the ReLU, over `count` values; product: of g (x - mean).
RK_BOTH inline BatchNormFactors batchnorm_factors(double sum, double product, float inv_std,
                                                  float scale, double count,
                                                  bool batch_statistics) {
  const auto inverse = static_cast<double>(inv_std), factor = static_cast<double>(scale);
  BatchNormFactors of{static_cast<float>(inverse * product), static_cast<float>(sum), scale, 0, 0};
  if (batch_statistics) {
    of.b = static_cast<float>(-factor * sum / count);
    of.c = static_cast<float>(-factor * inverse * inverse * product / count);
  }
  return of;
}

}  // namespace rk
