// Rows of nearly equal scores, as an untrained network or a collapsed class gives: with a small
// temperature, float must still agree with double.
#include "engine/base/random.h"
#include "kernels/rows/pnp_row.h"
#include "kernels/rows/recall_at_k_row.h"
#include "kernels/rows/smooth_ap_row.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace rk {
namespace {

struct Scores {
  int columns = 0;
  std::vector<double> values;  // float numbers
  std::vector<std::int32_t> classes;
  std::vector<std::int32_t> members;
};

Scores draw(CounterRandom& random) {
  Scores out;
  const int columns = out.columns = 2 + static_cast<int>(random.below(70));
  for (int k = 0; k < columns; ++k) {
    out.values.push_back(static_cast<double>(static_cast<float>(1 - 1e-3 * random.uniform())));
    out.classes.push_back(k < 2 || random.below(4) == 0 ? 0 : 1);  // the query and a positive
    if (out.classes.back() == 0) out.members.push_back(k);
  }
  out.values.resize(static_cast<std::size_t>(pad(columns)), 0.5);
  out.classes.resize(static_cast<std::size_t>(pad(columns)), 0);
  return out;
}

// Returns the gradient, followed by the loss.
template <class Row, class S>
std::vector<double> row_of(const Scores& scores, const typename Row::Params& params) {
  const int columns = scores.columns;
  std::vector<S> values(scores.values.begin(), scores.values.end());
  GalleryRow<S> in;
  in.columns = columns;
  in.classes = scores.classes.data();
  in.members = scores.members.data();
  in.member_count = static_cast<int>(scores.members.size());
  in.scores = values.data();
  S loss = 0;
  const Buffer scratch(static_cast<std::size_t>(scratch_of<Row>(params, columns, in.member_count)));
  Row::row(SerialTeam(), params, in, values.data(), &loss, scratch.data());
  std::vector<double> out(values.begin(), values.begin() + columns);
  out.push_back(static_cast<double>(loss));
  return out;
}

constexpr double kTau = 1e-4;
constexpr double kSigmoidError = 3e-7;  // of half_sigmoid in float, and so of its slope

// A row that divided by tau before subtracting would be off by 6e-4 (6e-8 / 1e-4) in each argument,
// and fail. `largest` is how much the slope of one sigmoid can contribute where terms of both signs
// may leave little of a gradient.
template <template <class> class Row> void compare(const auto& make_params, double largest) {
  for (const std::uint64_t seed : random_seeds(300)) {
    CounterRandom random(seed, 1, 0);
    const Scores scores = draw(random);
    const auto exact = row_of<Row<double>, double>(scores, make_params(double()));
    const auto rounded = row_of<Row<float>, float>(scores, make_params(float()));
    double error = 0;
    double size = 0;
    for (std::size_t k = 0; k + 1 < exact.size(); ++k) {
      error += std::pow(rounded[k] - exact[k], 2);
      size += std::pow(exact[k], 2);
    }
    // 1/tau and its product with a difference, up to 10, are each off by a relative 6e-8; rows add
    // up to 70 such terms of both signs.
    ASSERT_LT(std::sqrt(error), 2e-5 * std::sqrt(size) + kSigmoidError * largest)
        << "seed " << seed;
    ASSERT_NEAR(rounded.back(), exact.back(), 5e-6 * std::abs(exact.back())) << "seed " << seed;
  }
}

template <class S, template <class> class Row> typename Row<S>::Params with_tau() {
  typename Row<S>::Params params;
  params.tau = S(kTau);
  return params;
}

TEST(CloseScores, SmoothAp) {
  compare<SmoothApRow>([](auto s) { return with_tau<decltype(s), SmoothApRow>(); }, 3);
}
TEST(CloseScores, Pnp) {
  compare<PnpRow>([](auto s) { return with_tau<decltype(s), PnpRow>(); }, 3);
}
TEST(CloseScores, RecallAtK) {
  // 1/5 for one of five k; the slope of Q_k by R_j is at most 1/4.
  compare<RecallAtKRow>([](auto s) { return with_tau<decltype(s), RecallAtKRow>(); },
                        1 / (5 * 4 * kTau));
}

}  // namespace
}  // namespace rk
