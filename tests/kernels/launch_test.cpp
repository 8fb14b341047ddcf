// Kernels that both devices run, here on the CPU, against plain loops: sizes around blocks and
// packs, in place, accumulating, several threads.
#include "kernels/launch.h"

#include "kernels/blocks/elementwise_block.h"
#include "kernels/blocks/l2norm_block.h"
#include "kernels/blocks/matrix_block.h"
#include "kernels/element.h"
#include "tests/support/random_seed.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

namespace rk {
namespace {

class Launch : public testing::Test {
 protected:
  std::int64_t below(std::int64_t end) {
    return std::uniform_int_distribution<std::int64_t>(0, end - 1)(random_);
  }
  // Near a multiple of a block's elements, or any size.
  std::int64_t size() {
    const std::int64_t near = below(4) * kBlockElements + below(9) - 4;
    return std::max<std::int64_t>(0, below(2) == 0 ? near : below(3 * kBlockElements));
  }
  // Whole numbers among them, so that zeros and equal values occur, and now and then NaN.
  std::vector<float> values(std::int64_t count) {
    std::normal_distribution<float> normal;
    std::vector<float> out(static_cast<std::size_t>(count));
    for (float& x : out) x = below(3) == 0 ? static_cast<float>(below(5) - 2) : normal(random_);
    if (count > 0 && below(8) == 0) {
      out[static_cast<std::size_t>(below(count))] = std::numeric_limits<float>::quiet_NaN();
    }
    return out;
  }
  // Bit by bit, NaN included.
  static void expect_same(const std::vector<float>& got, const std::vector<float>& expected) {
    ASSERT_EQ(got.size(), expected.size());
    if (got.empty()) return;
    ASSERT_EQ(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)), 0);
  }

  std::mt19937 random_{static_cast<std::mt19937::result_type>(random_seed())};
};

TEST_F(Launch, ElementwiseAsDefined) {
  for (int round = 0; round < 300 && !HasFatalFailure(); ++round) {
    const Context context(static_cast<int>(1 + below(3)));
    const std::int64_t n = size();
    const std::vector<float> a = values(n), b = values(n), held = values(n);
    const bool accumulate = below(2) == 0;
    std::vector<float> relu(a.size()), sum(a.size()), dx = held, copied = held;
    std::vector<float> relu_got = a, sum_got(a.size()), dx_got = held, copied_got = held;
    for (std::size_t i = 0; i < a.size(); ++i) {
      relu[i] = a[i] <= 0 ? 0.0F : a[i];  // NaN stays
      sum[i] = a[i] + b[i];
      const float g = a[i] > 0 ? b[i] : 0.0F;
      dx[i] = accumulate ? held[i] + g : g;
      copied[i] = accumulate ? held[i] + b[i] : b[i];
    }
    launch(context, Relu<float>{n, relu_got.data(), relu_got.data()});  // in place
    launch(context, AddTensors<float>{n, a.data(), b.data(), sum_got.data()});
    launch(context, ReluGradient<float>{n, a.data(), b.data(), dx_got.data(), accumulate});
    launch(context, CopyOrAdd<float>{n, b.data(), copied_got.data(), accumulate});
    SCOPED_TRACE(fmt::format("{} elements, {} threads", n, context.threads()));
    expect_same(relu_got, relu);
    expect_same(sum_got, sum);
    expect_same(dx_got, dx);
    expect_same(copied_got, copied);
  }
}

TEST_F(Launch, RowsAsDefined) {
  for (int round = 0; round < 200 && !HasFatalFailure(); ++round) {
    const Context context(static_cast<int>(1 + below(3)));
    const int rows = static_cast<int>(below(40)), dim = static_cast<int>(1 + below(700));
    constexpr double kEpsilon = 1e-3;
    const std::int64_t count = std::int64_t{rows} * dim;
    std::vector<float> x = values(count);
    for (float& one : x) one = std::isnan(one) ? 1.0F : one;
    if (rows > 0) std::fill_n(x.begin(), dim, 1e-6F);  // shorter than epsilon
    std::vector<float> dy = values(count);
    for (float& one : dy) one = std::isnan(one) ? 1.0F : one;
    const std::vector<float> held(x.size(), 0.25F);
    const bool accumulate = below(2) == 0;
    std::vector<float> y(x.size()), dx = held, sums(static_cast<std::size_t>(dim));
    std::vector<double> norms(static_cast<std::size_t>(rows));
    launch(context, L2Norm{rows, dim, kEpsilon, x.data(), y.data(), norms.data()});
    launch(context, L2NormGradient{rows, dim, kEpsilon, x.data(), norms.data(), dy.data(),
                                   dx.data(), accumulate});
    launch(context, ColumnSums<float, float>{rows, dim, dy.data(), sums.data()});
    SCOPED_TRACE(fmt::format("{} x {}, {} threads", rows, dim, context.threads()));
    std::vector<double> totals(sums.size(), 0.0);
    for (int r = 0; r < rows; ++r) {
      const std::size_t at = static_cast<std::size_t>(r) * static_cast<std::size_t>(dim);
      double squares = 0, dot = 0;
      for (std::size_t d = at; d < at + static_cast<std::size_t>(dim); ++d) {
        squares += static_cast<double>(x[d]) * static_cast<double>(x[d]);
        dot += static_cast<double>(x[d]) * static_cast<double>(dy[d]);
        totals[d - at] += static_cast<double>(dy[d]);
      }
      const double norm = std::sqrt(squares), length = std::max(norm, kEpsilon);
      ASSERT_NEAR(norms[static_cast<std::size_t>(r)], norm, 1e-12 * (1 + norm));
      for (std::size_t d = at; d < at + static_cast<std::size_t>(dim); ++d) {
        const double along = norm < kEpsilon ? 0 : dot / (length * length);
        const double g = (static_cast<double>(dy[d]) - along * static_cast<double>(x[d])) / length;
        const double expected = accumulate ? 0.25 + g : g;
        // Computed in double: one rounding to float32, two when accumulating.
        ASSERT_NEAR(y[d], static_cast<double>(x[d]) / length, 1e-7);
        ASSERT_NEAR(dx[d], expected, 2.5e-7 * (0.25 + std::abs(g)));
      }
    }
    for (std::size_t c = 0; c < sums.size(); ++c) {
      ASSERT_NEAR(sums[c], totals[c], 1e-7 * (1 + std::abs(totals[c])));
    }
  }
}

TEST_F(Launch, MatrixPassesAsDefined) {
  for (int round = 0; round < 200 && !HasFatalFailure(); ++round) {
    const Context context(static_cast<int>(1 + below(3)));
    const auto rows = static_cast<int>(below(100)), columns = static_cast<int>(1 + below(40));
    const std::int64_t stride = rows + below(5);
    SCOPED_TRACE(fmt::format("{} rows of {}, {} apart", rows, columns, stride));
    const std::vector<float> row = values(columns), matrix = values(rows * stride);
    std::vector<float> filled(static_cast<std::size_t>(rows * columns)), expected_filled;
    for (int r = 0; r < rows; ++r) {
      expected_filled.insert(expected_filled.end(), row.begin(), row.end());
    }
    std::vector<float> sums = matrix, expected_sums = matrix;
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < rows; ++j) {
        expected_sums[static_cast<std::size_t>(i * stride + j)] +=
            matrix[static_cast<std::size_t>(j * stride + i)];
      }
    }
    launch(context, FillRows{rows, columns, row.data(), filled.data()});
    launch(context, AddTranspose{sums.data(), stride, rows});
    expect_same(filled, expected_filled);
    expect_same(sums, expected_sums);
  }
}

// A GPU ends the process there.
TEST(Packs, MustBeAligned) {
  alignas(16) std::array<float, 8> values{};
  EXPECT_NO_THROW(load_pack<4>(values.data() + 4));
  EXPECT_THROW(load_pack<4>(values.data() + 2), std::logic_error);
  EXPECT_NO_THROW(load_pack<2>(values.data() + 2));
  EXPECT_THROW(store_pack(values.data() + 1, Pack<float, 2>{}), std::logic_error);
  EXPECT_NO_THROW(store_pack(values.data() + 1, Pack<float, 1>{}));
}

}  // namespace
}  // namespace rk
