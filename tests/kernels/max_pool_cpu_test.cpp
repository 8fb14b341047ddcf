// The CPU's maximum pooling against its definition, on drawn windows and layouts: ties go to the
// first maximum in scan order, and every gradient to the pixel that won.
#include "kernels/cpu/pool.h"

#include "engine/base/integers.h"
#include "engine/base/random.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <vector>

namespace rk {
namespace {

std::int64_t element(const ImageLayout& layout, std::int64_t plane, std::int64_t pixel,
                     std::int64_t lane) {
  return plane * layout.plane() + pixel * layout.block + lane;
}

void expect_the_definition(CounterRandom& random) {
  pool_cpu::Window window{};
  std::array<std::int64_t, 2> size{}, out{};
  for (std::size_t axis = 0; axis < 2; ++axis) {
    window.kernel[axis] = 1 + random.below(4);
    window.stride[axis] = 1 + random.below(3);
    window.padding[axis] = random.below(window.kernel[axis] / 2 + 1);
    size[axis] = window.kernel[axis] + random.below(9);
    out[axis] =
        (size[axis] + 2 * window.padding[axis] - window.kernel[axis]) / window.stride[axis] + 1;
  }
  const std::int64_t block =
      random.below(3) == 0 ? 1 + random.below(40) : std::int64_t{8} << random.below(2);
  const ImageLayout x{1 + random.below(3), 1 + random.below(2), size[0], size[1], block};
  const ImageLayout y{x.batch, x.blocks, out[0], out[1], block};
  const std::int64_t gap = random.below(3) * 8, image = y.blocks * y.plane() + gap;
  const auto threads = static_cast<int>(1 + random.below(3));

  std::vector<float> in;  // few levels, so that ties are common
  for (std::int64_t i = 0; i < x.elements(); ++i)
    in.push_back(static_cast<float>(random.below(6) - 3));
  std::vector<float> got(at(x.batch * image), 7.0F), dy, held;
  for (std::int64_t i = 0; i < x.batch * image; ++i)
    dy.push_back(static_cast<float>(random.below(9)));
  for (std::int64_t i = 0; i < x.elements(); ++i)
    held.push_back(static_cast<float>(random.below(9)));
  std::vector<std::uint8_t> choice(at(y.elements()));
  pool_cpu::max_pool(threads, x, y, window, in.data(), choice.data(), got.data(), gap);
  const bool accumulate = random.below(2) == 0;
  std::vector<float> dx = held;
  pool_cpu::max_pool_backward(threads, x, y, window, choice.data(), dy.data(), dx.data(),
                              accumulate, gap);

  std::vector<float> expected(at(x.batch * image), 7.0F);
  std::vector<float> gradient = accumulate ? held : std::vector<float>(held.size(), 0.0F);
  for (std::int64_t plane = 0; plane < x.planes(); ++plane) {
    for (std::int64_t pixel = 0; pixel < y.pixels(); ++pixel) {
      for (std::int64_t lane = 0; lane < block; ++lane) {
        float most = -std::numeric_limits<float>::infinity();
        std::int64_t winner = -1;
        for (std::int64_t h = 0; h < window.kernel[0]; ++h) {
          for (std::int64_t w = 0; w < window.kernel[1]; ++w) {
            const std::int64_t row = pixel / out[1] * window.stride[0] - window.padding[0] + h;
            const std::int64_t column = pixel % out[1] * window.stride[1] - window.padding[1] + w;
            if (row < 0 || row >= size[0] || column < 0 || column >= size[1]) continue;
            const std::int64_t i = element(x, plane, row * size[1] + column, lane);
            if (in[at(i)] > most) most = in[at(i)], winner = i;
          }
        }
        const std::int64_t o = element(y, plane, pixel, lane) + plane / x.blocks * gap;
        expected[at(o)] = most;
        gradient[at(winner)] += dy[at(o)];
      }
    }
  }
  ASSERT_EQ(got, expected);
  ASSERT_EQ(dx, gradient);  // whole numbers: exact in any order
}

TEST(MaxPoolCpu, FollowsItsDefinitionOnDrawnWindows) {
  const std::uint64_t first = random_seed();
  for (std::uint64_t seed = first; seed < first + 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    CounterRandom random(seed, 1, 0);
    expect_the_definition(random);
  }
}

}  // namespace
}  // namespace rk
