#include "engine/tape/layout.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace rk {
namespace {

TEST(Layout, BlockMustDivideTheChannels) {
  EXPECT_THROW(image_layout(Shape{1, 2, 2, 20}, 16), std::invalid_argument);
  EXPECT_THROW(image_layout(Shape{1, 20}, 4), std::invalid_argument);
}

}  // namespace
}  // namespace rk
