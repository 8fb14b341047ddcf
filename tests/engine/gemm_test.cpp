#include "engine/device/gemm.h"
#include "tests/engine/gemm_cases.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

namespace rk {
namespace {

struct Case {
  std::int64_t m, n, k;
  bool transposed_a, transposed_b;
  bool accumulate;
  std::int64_t extra;  // added to every row stride
};

// Against three loops in double. Values lie in [-1, 1]; k float32 products and sums are off by at
// most k eps each, hence the tolerance.
void check(const Context& context, const Case& c) {
  const auto value = [](std::int64_t i, std::int64_t j, double phase) {
    return static_cast<float>(
        std::sin(1.3 * static_cast<double>(i) + 0.71 * static_cast<double>(j * j % 17) + phase));
  };
  const bool ta = c.transposed_a, tb = c.transposed_b;
  const std::int64_t lda = (ta ? c.m : c.k) + c.extra, ldb = (tb ? c.k : c.n) + c.extra,
                     ldc = c.n + c.extra;
  const auto at = [](std::int64_t row, std::int64_t column, std::int64_t stride) {
    return static_cast<std::size_t>(row * stride + column);
  };
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kSentinel = 12345.0F;
  std::vector<float> a(static_cast<std::size_t>((ta ? c.k : c.m) * lda), kNan);
  std::vector<float> b(static_cast<std::size_t>((tb ? c.n : c.k) * ldb), kNan);
  std::vector<float> result(static_cast<std::size_t>(c.m * ldc), kSentinel);
  for (std::int64_t i = 0; i < c.m; ++i) {
    for (std::int64_t p = 0; p < c.k; ++p) a[ta ? at(p, i, lda) : at(i, p, lda)] = value(i, p, 0.2);
  }
  for (std::int64_t p = 0; p < c.k; ++p) {
    for (std::int64_t j = 0; j < c.n; ++j) b[tb ? at(j, p, ldb) : at(p, j, ldb)] = value(p, j, 1.1);
  }
  for (std::int64_t i = 0; i < c.m; ++i) {
    for (std::int64_t j = 0; j < c.n; ++j) {
      result[at(i, j, ldc)] = c.accumulate ? value(i, j, 2.5) : kNan;  // which must be overwritten
    }
  }
  const Factor stored_a(a.data(), ta ? c.k : c.m, ta ? c.m : c.k, lda);
  const Factor stored_b(b.data(), tb ? c.n : c.k, tb ? c.k : c.n, ldb);
  gemm(context, {.a = ta ? transposed(stored_a) : stored_a,
                 .b = tb ? transposed(stored_b) : stored_b,
                 .c = {result.data(), c.m, c.n, ldc},
                 .accumulate = c.accumulate});
  const double tolerance = 1e-6 + 1.2e-7 * static_cast<double>(c.k);
  for (std::int64_t i = 0; i < c.m; ++i) {
    for (std::int64_t j = 0; j < ldc; ++j) {
      const float got = result[at(i, j, ldc)];
      if (j >= c.n) {
        ASSERT_EQ(got, kSentinel) << "written beside the result";
        continue;
      }
      double sum = 0;
      for (std::int64_t p = 0; p < c.k; ++p) {
        sum += static_cast<double>(value(i, p, 0.2)) * static_cast<double>(value(p, j, 1.1));
      }
      const double expected = sum + (c.accumulate ? static_cast<double>(value(i, j, 2.5)) : 0.0);
      ASSERT_NEAR(got, expected, tolerance)
          << c.m << "x" << c.n << "x" << c.k << " at " << i << "," << j;
    }
  }
}

TEST(Gemm, MatchesThreeLoopsInDouble) {
  for (int threads : {1, 2}) {
    const Context context(threads);
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        check(context, {1, 1, 1, ta, tb, false, 0});
        check(context, {7, 5, 3, ta, tb, false, 3});
        check(context, {33, 65, 129, ta, tb, false, 1});
        check(context, {64, 48, 257, ta, tb, true, 0});
        check(context, {17, 31, 20, ta, tb, true, 2});
        check(context, {3, 4, 0, ta, tb, false, 1});  // an empty sum
        check(context, {3, 4, 0, ta, tb, true, 1});
      }
    }
  }
}

TEST(Gemm, PreparedMatchesThreeLoopsInDouble) {
  for (const int threads : {1, 2}) {
    const Context context(threads);
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
      testing::check_prepared_gemm(context, DType::kFloat32, DType::kFloat32, seed);
    }
  }
}

// The addresses of nothing are not looked at.
TEST(Gemm, NothingToDoIsDone) {
  const Context context(1);
  float c = 7;
  const float* nothing = nullptr;
  gemm(context, {.a = {nothing, 0, 3, 3}, .b = {nothing, 3, 5, 5}, .c = {&c, 0, 5, 5}});
  EXPECT_EQ(c, 7);
}

TEST(Gemm, RefusesMatricesThatDoNotFitTogether) {
  const Context context(1);
  float c[6] = {};
  const Factor two_by_three(c, 2, 3, 3);
  EXPECT_THROW(gemm(context, {.a = two_by_three, .b = two_by_three, .c = {c, 2, 3, 3}}),
               std::invalid_argument);
  EXPECT_THROW(gemm(context, {.a = two_by_three, .b = transposed(two_by_three), .c = {c, 2, 3, 3}}),
               std::invalid_argument);
}

}  // namespace
}  // namespace rk
