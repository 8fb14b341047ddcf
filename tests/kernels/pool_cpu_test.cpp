// The CPU's poolings against their definitions, on drawn windows and layouts: of equal maxima the
// first in scan order wins, and the gradient goes to the pixel that won or, of means, to all.
#include "kernels/cpu/pool.h"

#include "engine/base/integers.h"
#include "engine/base/random.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace rk {
namespace {

std::int64_t element(const ImageLayout& layout, std::int64_t plane, std::int64_t pixel,
                     std::int64_t lane) {
  return plane * layout.plane() + pixel * layout.block + lane;
}

std::vector<float> whole_numbers(CounterRandom& random, std::int64_t count, std::int64_t below) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(random.below(below)));
  return values;
}

ImageLayout drawn_images(CounterRandom& random, const std::array<std::int64_t, 2>& size) {
  const std::int64_t block =
      random.below(3) == 0 ? 1 + random.below(40) : std::int64_t{8} << random.below(2);
  return {1 + random.below(3), 1 + random.below(2), size[0], size[1], block};
}

struct DrawnPool {
  explicit DrawnPool(CounterRandom& random, bool rounded_up)
      : threads(static_cast<int>(1 + random.below(3))) {
    std::array<std::int64_t, 2> size{}, out{};
    for (std::size_t axis = 0; axis < 2; ++axis) {
      window.kernel[axis] = 1 + random.below(4);
      window.stride[axis] = 1 + random.below(3);
      window.padding[axis] = random.below(window.kernel[axis] / 2 + 1);
      size[axis] = window.kernel[axis] + random.below(9);
      const std::int64_t room = size[axis] + 2 * window.padding[axis] - window.kernel[axis];
      out[axis] = room / window.stride[axis] + 1;
      // One more window for the pixels that are left over, if it begins before the image ends.
      if (rounded_up && room % window.stride[axis] != 0 && random.below(2) == 0 &&
          out[axis] * window.stride[axis] - window.padding[axis] < size[axis])
        ++out[axis];
    }
    x = drawn_images(random, size);
    y = {x.batch, x.blocks, out[0], out[1], x.block};
    gap = random.below(3) * 8;
    image = y.blocks * y.plane() + gap;
    dy = whole_numbers(random, x.batch * image, 9);
    held = whole_numbers(random, x.elements(), 9);
    accumulate = random.below(2) == 0;
    dx = accumulate ? held : std::vector<float>(held.size());
  }

  // Calls f(element of y, pixel of y, elements of x in its window) for each.
  template <class F> void for_each_window(F&& f) const {
    for (std::int64_t plane = 0; plane < x.planes(); ++plane) {
      for (std::int64_t pixel = 0; pixel < y.pixels(); ++pixel) {
        for (std::int64_t lane = 0; lane < x.block; ++lane) {
          std::vector<std::int64_t> inside;
          for (std::int64_t h = 0; h < window.kernel[0]; ++h) {
            for (std::int64_t w = 0; w < window.kernel[1]; ++w) {
              const std::int64_t row = pixel / y.width * window.stride[0] - window.padding[0] + h;
              const std::int64_t column =
                  pixel % y.width * window.stride[1] - window.padding[1] + w;
              if (row < 0 || row >= x.height || column < 0 || column >= x.width) continue;
              inside.push_back(element(x, plane, row * x.width + column, lane));
            }
          }
          f(element(y, plane, pixel, lane) + plane / x.blocks * gap, pixel, inside);
        }
      }
    }
  }

  pool_cpu::Window window{};
  ImageLayout x, y;
  std::int64_t gap = 0, image = 0;
  int threads;
  bool accumulate = false;
  std::vector<float> dy, held;
  std::vector<float> dx;  // starts as what is added to
};

void expect_maxima(CounterRandom& random) {
  DrawnPool drawn(random, false);
  const ImageLayout &x = drawn.x, &y = drawn.y;
  const std::vector<float> in = whole_numbers(random, x.elements(), 6);  // ties are common
  std::vector<float> got(at(x.batch * drawn.image), 7.0F), dx = drawn.held;
  std::vector<std::uint8_t> choice(at(y.elements()));
  pool_cpu::max_pool(drawn.threads, x, y, drawn.window, in.data(), choice.data(), got.data(),
                     drawn.gap);
  pool_cpu::max_pool_backward(drawn.threads, x, y, drawn.window, choice.data(), drawn.dy.data(),
                              dx.data(), drawn.accumulate, drawn.gap);
  std::vector<float> expected(got.size(), 7.0F), gradient = drawn.dx;
  drawn.for_each_window(
      [&](std::int64_t o, std::int64_t /*pixel*/, const std::vector<std::int64_t>& inside) {
        const std::int64_t winner =
            *std::ranges::max_element(inside, {}, [&](std::int64_t i) { return in[at(i)]; });
        expected[at(o)] = in[at(winner)];
        gradient[at(winner)] += drawn.dy[at(o)];
      });
  ASSERT_EQ(got, expected);
  ASSERT_EQ(dx, gradient);  // whole numbers: exact in any order
}

void expect_means(CounterRandom& random) {
  DrawnPool drawn(random, true);
  const ImageLayout &x = drawn.x, &y = drawn.y;
  const std::vector<float> in = whole_numbers(random, x.elements(), 100);
  std::vector<float> got(at(x.batch * drawn.image), 7.0F), dx = drawn.held;
  pool_cpu::average_pool(drawn.threads, x, y, drawn.window, in.data(), got.data(), drawn.gap);
  pool_cpu::average_pool_backward(drawn.threads, x, y, drawn.window, drawn.dy.data(), dx.data(),
                                  drawn.accumulate, drawn.gap);
  std::vector<double> expected(got.size(), 7.0), gradient(drawn.dx.begin(), drawn.dx.end());
  // Of a window, its rows or columns that lie in the image or its padding.
  const auto along = [&](std::int64_t place, std::int64_t pixels, std::size_t axis) {
    const std::int64_t begin = place * drawn.window.stride[axis] - drawn.window.padding[axis];
    return std::min(drawn.window.kernel[axis], pixels + drawn.window.padding[axis] - begin);
  };
  drawn.for_each_window(
      [&](std::int64_t o, std::int64_t pixel, const std::vector<std::int64_t>& inside) {
        const auto size = static_cast<double>(along(pixel / y.width, x.height, 0) *
                                              along(pixel % y.width, x.width, 1));
        double sum = 0;
        for (const std::int64_t i : inside) {
          sum += static_cast<double>(in[at(i)]);
          gradient[at(i)] += static_cast<double>(drawn.dy[at(o)]) / size;
        }
        expected[at(o)] = sum / size;
      });
  // The sums are of whole numbers, then one rounding; gradients: up to 16 roundings of numbers
  // up to 137.
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-5) << i;
  for (std::size_t i = 0; i < dx.size(); ++i) ASSERT_NEAR(dx[i], gradient[i], 2e-4) << i;
}

void expect_of_whole_images(CounterRandom& random) {
  const ImageLayout x = drawn_images(random, {1 + random.below(9), 1 + random.below(9)});
  const auto kind =
      std::array{PoolKind::kAverage, PoolKind::kMax, PoolKind::kGem}[at(random.below(3))];
  const Gem gem{.p = random.below(2) == 0 ? 3.0 : random.uniform(0.5, 8), .epsilon = 0.5};
  const auto threads = static_cast<int>(1 + random.below(3));
  const bool accumulate = random.below(2) == 0;
  const std::vector<float> in = whole_numbers(random, x.elements(), 6);
  const std::vector<float> dy = whole_numbers(random, x.batch * x.channels(), 9);
  const std::vector<float> held = whole_numbers(random, x.elements(), 9);
  std::vector<float> got(dy.size()), dx = held;
  std::vector<std::int64_t> best(dy.size(), -1);
  pool_cpu::global_pool(threads, x, kind, gem, in.data(),
                        kind == PoolKind::kMax ? best.data() : nullptr, got.data());
  pool_cpu::global_pool_backward(threads, x, kind, gem, in.data(), got.data(), best.data(),
                                 dy.data(), dx.data(), accumulate);
  const auto rows = static_cast<double>(x.pixels());
  for (std::int64_t o = 0; o < std::ssize(dy); ++o) {
    const auto value = [&](std::int64_t row) {
      return static_cast<double>(in[at(element(x, o / x.block, row, o % x.block))]);
    };
    double mean = 0, powers = 0;
    std::int64_t winner = 0;
    for (std::int64_t row = 0; row < x.pixels(); ++row) {
      mean += value(row) / rows;
      powers += std::pow(std::max(value(row), gem.epsilon), gem.p) / rows;
      if (value(row) > value(winner)) winner = row;
    }
    const double pooled = kind == PoolKind::kAverage ? mean
                          : kind == PoolKind::kMax   ? value(winner)
                                                     : std::pow(powers, 1 / gem.p);
    ASSERT_NEAR(got[at(o)], pooled, 1e-6 * pooled + 1e-6) << o;  // one rounding to float
    if (kind == PoolKind::kMax) {
      ASSERT_EQ(best[at(o)], winner) << o;
    }
    for (std::int64_t row = 0; row < x.pixels(); ++row) {
      double share = 1 / rows;
      if (kind == PoolKind::kMax) share = row == winner ? 1 : 0;
      if (kind == PoolKind::kGem)
        share *= value(row) < gem.epsilon ? 0 : std::pow(value(row) / pooled, gem.p - 1);
      const std::size_t i = at(element(x, o / x.block, row, o % x.block));
      const double expected =
          share * static_cast<double>(dy[at(o)]) + (accumulate ? static_cast<double>(held[i]) : 0);
      // The pooled number is rounded to float before it is raised to at most the 7th power.
      ASSERT_NEAR(dx[i], expected, 2e-6 * expected + 1e-6) << o << ", " << row;
    }
  }
}

void on_drawn_images(void (*expect_definition)(CounterRandom&)) {
  for (const std::uint64_t seed : random_seeds(300)) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    CounterRandom random(seed, 1, 0);
    expect_definition(random);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(PoolCpu, MaximaFollowTheirDefinition) { on_drawn_images(expect_maxima); }
TEST(PoolCpu, MeansFollowTheirDefinition) { on_drawn_images(expect_means); }
TEST(PoolCpu, PoolingsOfWholeImagesFollowTheirDefinition) {
  on_drawn_images(expect_of_whole_images);
}

}  // namespace
}  // namespace rk
