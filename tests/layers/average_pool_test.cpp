// Average pooling against its definition: for every shape of window and both ways of rounding.
#include "engine/base/random.h"
#include "layers/pool.h"
#include "tests/support/node_harness.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

namespace rk {
namespace {

// Along one axis: where every window begins and ends, counted from the image's first pixel. Both
// may lie in the padding, but not beyond it.
std::vector<std::array<std::int64_t, 2>> windows_of(std::int64_t size, std::int64_t kernel,
                                                    std::int64_t stride, std::int64_t padding,
                                                    bool ceil_mode) {
  std::vector<std::array<std::int64_t, 2>> windows;
  const std::int64_t end = size + padding;
  for (std::int64_t begin = -padding;; begin += stride) {
    const bool whole = begin + kernel <= end;
    // Rounded up, one more window takes the pixels that are left over, unless it were all padding.
    const bool left_over = !whole && ceil_mode && windows.back()[1] < end && begin < size;
    if (!whole && !left_over) return windows;
    windows.push_back({begin, std::min(begin + kernel, end)});
  }
}

TEST(AveragePool, IsTheMeanOverWindowAndPadding) {
  CounterRandom random(random_seed(), 0, 0);
  for (int drawn = 0; drawn < 60; ++drawn) {
    PoolOptions options;
    options.ceil_mode = random.below(2) == 0;
    std::array<std::int64_t, 2> size{};
    for (std::size_t axis = 0; axis < 2; ++axis) {
      options.kernel[axis] = 1 + random.below(4);
      options.stride[axis] = 1 + random.below(3);
      options.padding[axis] = random.below(options.kernel[axis] / 2 + 1);
      size[axis] = options.kernel[axis] + random.below(7);
    }
    const std::int64_t block = random.below(2) == 0 ? 0 : 8;
    const Shape image{2, size[0], size[1], block > 0 ? 16 : 1 + random.below(20)};
    SCOPED_TRACE(::testing::Message()
                 << "case " << drawn << ": " << image.text() << ", kernel " << options.kernel[0]
                 << " x " << options.kernel[1] << ", stride " << options.stride[0] << " x "
                 << options.stride[1] << ", padding " << options.padding[0] << " x "
                 << options.padding[1] << (options.ceil_mode ? ", rounded up" : ""));
    NodeHarness harness(1, {{.shape = image, .block = block}},
                        [&](Program& program, const std::vector<TensorId>& inputs) {
                          return average_pool(program, inputs[0], "pool", options);
                        });
    const auto down = windows_of(size[0], options.kernel[0], options.stride[0], options.padding[0],
                                 options.ceil_mode);
    const auto across = windows_of(size[1], options.kernel[1], options.stride[1],
                                   options.padding[1], options.ceil_mode);
    ASSERT_EQ(harness.output_shape(), (Shape{2, std::ssize(down), std::ssize(across), image[3]}));
    const std::vector<float> x = noise(image.elements(), 1);
    const std::vector<float> y = harness.forward({x});
    std::size_t at = 0;
    for (std::int64_t n = 0; n < 2; ++n) {
      for (const auto& rows : down) {
        for (const auto& columns : across) {
          for (std::int64_t c = 0; c < image[3]; ++c) {
            double sum = 0;
            for (std::int64_t h = std::max<std::int64_t>(rows[0], 0);
                 h < std::min(rows[1], size[0]); ++h) {
              for (std::int64_t w = std::max<std::int64_t>(columns[0], 0);
                   w < std::min(columns[1], size[1]); ++w) {
                const std::int64_t pixel = (n * size[0] + h) * size[1] + w;
                sum += static_cast<double>(x[static_cast<std::size_t>(pixel * image[3] + c)]);
              }
            }
            const auto pixels =
                static_cast<double>((rows[1] - rows[0]) * (columns[1] - columns[0]));
            // Up to sixteen additions in float32.
            ASSERT_NEAR(y[at++], sum / pixels, 1e-6);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace rk
