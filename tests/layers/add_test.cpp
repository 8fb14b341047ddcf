#include "engine/tape/program.h"
#include "layers/elementwise.h"
#include "tests/support/node_harness.h"
#include "tests/support/stored_images.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace rk {
namespace {

TEST(Add, SummandsLieInBlocksOfChannelsOrNot) {
  const Shape shape{2, 3, 5, 16};
  const std::vector<float> a_in = noise(shape.elements(), 1), b_in = noise(shape.elements(), 2),
                           dy = noise(shape.elements(), 3);
  std::vector<float> expected = a_in;
  for (std::size_t i = 0; i < b_in.size(); ++i) expected[i] += b_in[i];
  for (const std::int64_t a_block : {0, 8, 16}) {
    for (const std::int64_t b_block : {0, 8, 16}) {
      SCOPED_TRACE(testing::Message() << "blocks of " << a_block << " and " << b_block);
      const Context context(2);
      Parameters parameters;
      Program program(context, parameters, {.gradients = true, .input_gradient = true});
      const TensorId a = program.input("a", shape, a_block), b = program.input("b", shape, b_block);
      const TensorId y = add(program, a, b, "sum");
      program.set_output(y);
      program.plan();
      std::ranges::copy(as_stored(program, a, a_in), program.value(a));
      std::ranges::copy(as_stored(program, b, b_in), program.value(b));
      program.forward();
      EXPECT_EQ(from_stored(program, y, program.value(y)), expected);
      std::ranges::copy(as_stored(program, y, dy), program.gradient(y));
      program.backward();
      EXPECT_EQ(from_stored(program, a, program.gradient(a)), dy);
      EXPECT_EQ(from_stored(program, b, program.gradient(b)), dy);
    }
  }
}

}  // namespace
}  // namespace rk
