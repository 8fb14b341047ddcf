#include "losses/auc/auc_gradient.h"

#include "kernels/launch.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

namespace rk {
namespace {

// Coefficients, in powers of x, of the polynomial that interpolates f at the Chebyshev points of
// [-half, half].
template <std::size_t kCount, class F> std::array<double, kCount> fit(double half, F&& f) {
  // cos(j (k + 1/2) pi / kCount)
  const auto cosine = [](std::size_t j, std::size_t k) {
    return std::cos(std::numbers::pi * static_cast<double>(j * (2 * k + 1)) / (2.0 * kCount));
  };
  std::array<double, kCount> values;
  for (std::size_t k = 0; k < kCount; ++k) values[k] = f(half * cosine(1, k));
  std::array<double, kCount> total{};
  std::array<double, kCount> before{};  // T_(j-1) and, below, T_j, in powers of x/half
  std::array<double, kCount> chebyshev{};
  chebyshev[0] = 1;
  for (std::size_t j = 0; j < kCount; ++j) {
    double weight = 0;
    for (std::size_t k = 0; k < kCount; ++k) weight += values[k] * cosine(j, k);
    weight *= (j == 0 ? 1.0 : 2.0) / kCount;
    std::array<double, kCount> next{};
    for (std::size_t d = 0; d < kCount; ++d) {
      total[d] += weight * chebyshev[d];
      if (d > 0) next[d] = (j == 0 ? 1 : 2) * chebyshev[d - 1];
      next[d] -= before[d];
    }
    before = chebyshev;
    chebyshev = next;
  }
  double power = 1;
  for (double& coefficient : total) {
    coefficient /= power;
    power *= half;
  }
  return total;
}

}  // namespace

template <class S>
void AucGradientTable<S>::build(const Context& context, double r, double step, int count) {
  // The poles of sg_r lie pi/r from the real axis: intervals of 0.26/r leave an error of
  // (2 pi / 0.13)^-(degree + 1), 2e-7 in float.
  const int pieces = std::max(1, static_cast<int>(std::ceil(r * step / 0.26)));
  // Steps beyond which a sigmoid is flat.
  const int reach = static_cast<int>(std::ceil(AucAllParams<S>::kZero / (r * step))) + 1;
  const int steps = count - 1 + 2 * reach + 1;
  const double width = step / pieces;
  const auto per_step = static_cast<std::size_t>(pieces) * kCoefficients;
  std::vector<double> bell;
  for (int lag = -reach; lag <= reach; ++lag) {
    for (int i = 0; i < pieces; ++i) {
      const auto coefficients = fit<kCoefficients>(width / 2, [&](double x) {
        const double e = std::exp(-std::abs(r * (lag * step + i * width + x)));
        return r * e / ((1 + e) * (1 + e));
      });
      bell.insert(bell.end(), coefficients.begin(), coefficients.end());
    }
  }
  bell_ = context.copy_of(bell);
  const std::size_t size = static_cast<std::size_t>(steps) * per_step;
  coefficients_ = context.copy_of(std::vector<S>(2 * size, S(0)));
  table_ = {.bell = bell_.as<double>(),
            .reach = reach,
            .count = count,
            .steps = steps,
            .per_step = pieces * kCoefficients,
            .coefficients = coefficients_.as<S>()};

  // The origin is the threshold nearest 0, where differences of scores keep most digits.
  const int origin = static_cast<int>(std::lround(1 / step));
  gradient_.positive = table_.coefficients;
  gradient_.negative = table_.coefficients + size;
  gradient_.origin = static_cast<S>(origin * step - 1);
  constexpr double kFewBits = 1 << 12;
  int exponent = 0;
  const double mantissa = std::frexp(width, &exponent);
  gradient_.width =
      static_cast<S>(std::ldexp(std::floor(mantissa * kFewBits) / kFewBits, exponent));
  gradient_.width_rest = static_cast<S>(width - static_cast<double>(gradient_.width));
  gradient_.per_width = static_cast<S>(1 / width);
  gradient_.before = (origin + reach) * pieces;
  gradient_.after = steps * pieces - 1 - gradient_.before;
}

template <class S> void AucGradientTable<S>::fill(const Context& context, const S* slopes) const {
  launch(context, FillAucTable<S>{table_, slopes});
}

template class AucGradientTable<float>;
template class AucGradientTable<double>;

}  // namespace rk
