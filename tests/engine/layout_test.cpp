#include "engine/tape/layout.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace rk {
namespace {

// The formula of the header, element by element.
TEST(Layout, StoresWhereItSays) {
  const Shape shape{2, 3, 5, 32};
  std::vector<float> nhwc(static_cast<std::size_t>(shape.elements()));
  std::iota(nhwc.begin(), nhwc.end(), 0.0F);
  for (std::int64_t block : {8, 16, 32}) {
    const ImageLayout layout = image_layout(shape, block);
    std::vector<float> stored(nhwc.size(), -1), back(nhwc.size(), -1);
    from_nhwc(layout, nhwc.data(), stored.data());
    to_nhwc(layout, stored.data(), back.data());
    EXPECT_EQ(back, nhwc);
    std::size_t i = 0;
    for (std::int64_t n = 0; n < 2; ++n) {
      for (std::int64_t y = 0; y < 3; ++y) {
        for (std::int64_t x = 0; x < 5; ++x) {
          for (std::int64_t c = 0; c < 32; ++c) {
            const std::int64_t place =
                ((n * (32 / block) + c / block) * 15 + y * 5 + x) * block + c % block;
            ASSERT_EQ(stored[static_cast<std::size_t>(place)], nhwc[i++]);
          }
        }
      }
    }
  }
}

TEST(Layout, BlockMustDivideTheChannels) {
  EXPECT_THROW(image_layout(Shape{1, 2, 2, 20}, 16), std::invalid_argument);
  EXPECT_THROW(image_layout(Shape{1, 20}, 4), std::invalid_argument);
}

}  // namespace
}  // namespace rk
