#include "losses/auc/auc_gradient.h"
#include "engine/base/integers.h"

#include "losses/auc/auc.h"
#include "tests/losses/loss_test.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace rk {
namespace {

struct Thresholds {
  explicit Thresholds(double ds)
      : step(ds), r(auc_steepness(ds)), count(static_cast<int>(std::floor(2 / ds + 1e-9)) + 1) {}
  double step;
  double r;
  int count;
};

// The definition.
double derivative(const Thresholds& t, const double* slopes, double score) {
  double sum = 0;
  for (int m = 0; m < t.count; ++m) {
    const double e = std::exp(-std::abs(t.r * (score + 1 - m * t.step)));
    sum += slopes[m] * t.r * e / ((1 + e) * (1 + e));
  }
  return sum;
}

// The largest error over scores on and beyond all thresholds, relative to r.
template <class S> double worst(const Thresholds& t) {
  std::vector<double> slopes;
  std::vector<S> given;
  for (int m = 0; m < 2 * t.count; ++m) {
    given.push_back(static_cast<S>(std::sin(m * m)));
    slopes.push_back(given.back());
  }
  AucGradientTable<S> table;
  const Context context(1);
  table.build(context, t.r, t.step, t.count);
  table.fill(context, given.data());
  const AucGradient<S> gradient = table.gradient();
  double out = 0;
  for (int i = -3000; i <= 3000; ++i) {
    const S score = static_cast<S>(i * 0.00101);
    const auto* of_positive = slopes.data();
    const auto* of_negative = slopes.data() + t.count;
    for (const double error : {static_cast<double>(gradient(gradient.positive, score)) -
                                   derivative(t, of_positive, score),
                               static_cast<double>(gradient(gradient.negative, score)) -
                                   derivative(t, of_negative, score)}) {
      if (std::abs(error) > out || std::isnan(error)) out = std::abs(error);  // NaN stays
    }
  }
  return out / t.r;
}

// In float the error is mostly the rounding of a score's distance from its threshold, 6e-8 r, plus
// the polynomial's 2e-7 and the tail cut off at 6e-9. In double it is the polynomial's 3e-14 and a
// tail below 1e-17.
TEST(AucGradient, IsTheSumOverThresholds) {
  for (const double step : {0.005, 0.01, 0.04, 0.05, 0.2, 0.4, 1.0}) {
    const Thresholds t(step);
    EXPECT_LT(worst<float>(t), 5e-7 + 6e-8 * t.r) << step;
    EXPECT_LT(worst<double>(t), 1e-12) << step;
  }
}

TEST(AucGradient, IsZeroFarFromAllThresholds) {
  const std::vector<float> slopes(82, 1.0F);
  AucGradientTable<float> table;
  const Context context(1);
  table.build(context, 42.2, 0.05, 41);
  table.fill(context, slopes.data());
  const AucGradient<float> gradient = table.gradient();
  for (const float score : {-1e20F, -3.0F, 3.0F, 1e20F}) {
    EXPECT_EQ(gradient(gradient.positive, score), 0) << score;
    EXPECT_EQ(gradient(gradient.negative, score), 0) << score;
  }
}

struct QueryPair {
  int row;
  reference::Item positive, negative;
};

std::vector<QueryPair> hardest_pairs(const LossData<double>& data) {
  std::vector<QueryPair> out;
  for (const reference::Query& query : reference::queries(data)) {
    const auto hardest = [&](bool positive) {
      const auto key = [&](const reference::Item& item) {
        return item.positive != positive ? 2 : positive ? item.s : -item.s;
      };
      return *std::min_element(query.gallery.begin(), query.gallery.end(),
                               [&](const auto& a, const auto& b) { return key(a) < key(b); });
    };
    out.push_back({query.row, hardest(true), hardest(false)});
  }
  return out;
}

// The gradient of auc_bh in long double, without a difference of nearly equal numbers: two sigmoids
// are subtracted on the side where both are small, one a third of the other at most.
std::vector<double> auc_bh_gradient(const LossData<double>& data, double ds) {
  using Wide = long double;
  const std::vector<QueryPair> pairs = hardest_pairs(data);
  const Wide r = auc_steepness(ds);
  const int steps = auc_thresholds(ds) - 1;
  const auto exponent = [&](double s, int m) { return r * (s + 1 - m * static_cast<Wide>(ds)); };
  const auto sigmoid = [](Wide x) { return 1 / (1 + std::exp(-x)); };
  // Of the sigmoids at thresholds m and m + 1.
  const auto difference = [&](double s, int m) -> Wide {
    if (m < 0 || m >= steps) return 0;
    const Wide low = exponent(s, m);
    const Wide high = exponent(s, m + 1);
    return low + high > 0 ? sigmoid(-high) - sigmoid(-low) : sigmoid(low) - sigmoid(high);
  };
  const auto mean = [&](auto&& f) {
    Wide total = 0;
    for (const QueryPair& pair : pairs) total += f(pair);
    return total / static_cast<Wide>(pairs.size());
  };
  const auto t_at = [&](int m) {
    return mean([&](const QueryPair& pair) { return sigmoid(exponent(pair.positive.s, m)); });
  };
  std::vector<Wide> by_t, by_f;
  for (int m = 0; m <= steps; ++m) {
    by_t.push_back(-mean([&](const QueryPair& pair) {
      return (difference(pair.negative.s, m - 1) + difference(pair.negative.s, m)) / 2;
    }));
    by_f.push_back(m == 0       ? -(t_at(0) + t_at(1)) / 2
                   : m == steps ? (t_at(steps - 1) + t_at(steps)) / 2
                                : mean([&](const QueryPair& pair) {
                                    return (difference(pair.positive.s, m - 1) +
                                            difference(pair.positive.s, m)) /
                                           2;
                                  }));
  }
  const auto gradient = [&](const std::vector<Wide>& slopes, double s) {
    Wide total = 0;
    for (int m = 0; m <= steps; ++m) {
      const Wide x = exponent(s, m);
      total += slopes[at(m)] * r * sigmoid(x) * sigmoid(-x);
    }
    return static_cast<double>(total / static_cast<Wide>(pairs.size()));
  };
  const auto rows = static_cast<std::size_t>(data.rows);
  std::vector<std::vector<double>> g(rows, std::vector<double>(rows));
  for (const QueryPair& pair : pairs) {
    std::vector<double>& row = g[at(pair.row)];
    row[at(pair.positive.column)] = gradient(by_t, pair.positive.s);
    row[at(pair.negative.column)] = gradient(by_f, pair.negative.s);
  }
  return reference::embeddings_gradient(data, g);
}

// Classes of 8 with items anywhere on the sphere, or some of them so and the others close together.
// Coordinates are multiples of 2^-8, which makes every similarity exact in float.
LossData<double> unsolved_batch(std::uint64_t seed) {
  constexpr std::int64_t kClass = 8;
  CounterRandom random(seed, 1, 0);
  LossData<double> out;
  out.rows = kClass * (2 + random.below(10));
  out.dim = 5 + random.below(20);
  const double solved = random.below(3) == 0 ? 0.5 : 0;
  std::vector<double> item(static_cast<std::size_t>(out.dim));
  bool close = false;
  for (std::int64_t i = 0; i < out.rows; ++i) {
    if (i % kClass == 0) close = random.uniform() < solved;
    double square = 0;
    for (double& x : item) {
      x = close && i % kClass > 0 ? x + 0.05 * random.normal() : random.normal();
      square += x * x;
    }
    for (double& x : item) {
      x = std::round(x / std::sqrt(square) * 256) / 256;
      out.embeddings.push_back(x);
    }
    out.labels.push_back(i / kClass);
  }
  return out;
}

// A gradient that is small because hardly a pair is in the right order is made of the tails of two
// sigmoids. Where it is above 1e-12 their exponents add up to 28 at most. In float each is known to
// 6e-8 of itself and of r, and an exponential to 1e-7 of its argument: 5e-6 + 4e-6 at most.
TEST(AucHardest, GradientKeepsItsDigitsWhereHardlyAPairIsInOrder) {
  const Context context(1);
  int compared = 0;
  int tiny = 0;
  for (const std::uint64_t seed : random_seeds(60)) {
    const LossData<double> data = unsolved_batch(seed);
    for (const double ds : {0.05, 0.2}) {
      const std::vector<double> expected = auc_bh_gradient(data, ds);
      const double length = norm(expected);
      if (length < 1e-12) continue;
      ++compared;
      tiny += length < 1e-6 ? 1 : 0;
      const LossSpec spec = parse_loss("auc_bh:ds=" + std::to_string(ds));
      LossFunction<float> rounded(context, spec, data.shape(), false);
      LossFunction<double> exact(context, spec, data.shape(), false);
      EXPECT_LT(distance(exact(data).grad, expected), 1e-9 * length) << "seed " << seed;
      EXPECT_LT(distance(rounded(made_up::as_float(data)).grad, expected), 1e-5 * length)
          << "seed " << seed << ", ds " << ds << ", gradient of length " << length;
    }
  }
  EXPECT_GT(compared, 30);
  EXPECT_GT(tiny, 0);
}

}  // namespace
}  // namespace rk
