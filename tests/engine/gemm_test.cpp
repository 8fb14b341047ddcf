#include "engine/device/gemm.h"
#include "tests/engine/gemm_cases.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace rk {
namespace {

struct Case {
  std::int64_t m, n, k;
  Op op_a, op_b;
  float alpha, beta;
  std::int64_t extra;  // added to every row stride
};

// Against three loops in double. Values lie in [-1, 1]; k float32 products and sums are off by at
// most k eps each, hence the tolerance.
void check(const Context& context, const Case& c) {
  const auto value = [](std::int64_t i, std::int64_t j, double phase) {
    return static_cast<float>(
        std::sin(1.3 * static_cast<double>(i) + 0.71 * static_cast<double>(j * j % 17) + phase));
  };
  const bool ta = c.op_a == Op::kTranspose, tb = c.op_b == Op::kTranspose;
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
      result[at(i, j, ldc)] = c.beta == 0 ? kNan : value(i, j, 2.5);  // beta 0 must overwrite
    }
  }
  gemm(context, c.op_a, c.op_b, c.m, c.n, c.k, c.alpha, a.data(), lda, b.data(), ldb, c.beta,
       result.data(), ldc);
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
      const double expected = c.alpha * sum + (c.beta == 0 ? 0.0 : c.beta * value(i, j, 2.5));
      ASSERT_NEAR(got, expected, tolerance)
          << c.m << "x" << c.n << "x" << c.k << " at " << i << "," << j;
    }
  }
}

TEST(Gemm, MatchesThreeLoopsInDouble) {
  for (int threads : {1, 2}) {
    const Context context(threads);
    for (Op op_a : {Op::kNone, Op::kTranspose}) {
      for (Op op_b : {Op::kNone, Op::kTranspose}) {
        check(context, {1, 1, 1, op_a, op_b, 1, 0, 0});
        check(context, {7, 5, 3, op_a, op_b, 1, 0, 3});
        check(context, {33, 65, 129, op_a, op_b, -0.5F, 0, 1});
        check(context, {64, 48, 257, op_a, op_b, 2, 1, 0});
        check(context, {17, 31, 20, op_a, op_b, 1, -0.25F, 2});
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
  gemm(context, Op::kNone, Op::kNone, 0, 5, 3, 1, nullptr, 3, nullptr, 5, 0, &c, 5);
  EXPECT_EQ(c, 7);
}

}  // namespace
}  // namespace rk
