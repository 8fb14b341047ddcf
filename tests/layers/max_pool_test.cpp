#include "layers/pool.h"
#include "tests/support/node_harness.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace rk {
namespace {

// A byte holds which pixel of its window a maximum is, and 255 stands for none.
TEST(MaxPool, AWindowHasAtMost254Pixels) {
  const Shape image{1, 127, 15, 8};
  const auto pooled = [&](std::int64_t height, std::int64_t width) {
    NodeHarness harness(
        1, {{.shape = image}}, [&](Program& program, const std::vector<TensorId>& inputs) {
          return max_pool(program, inputs[0], "pool", {{height, width}, {1, 1}, {0, 0}, false});
        });
    return harness.output_shape();
  };
  EXPECT_EQ(pooled(127, 2), (Shape{1, 1, 14, 8}));
  EXPECT_THROW(pooled(17, 15), std::invalid_argument);
}

}  // namespace
}  // namespace rk
