// One tensor as two inputs of a node.
#include "layers/conv_bn.h"
#include "layers/elementwise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <stdexcept>

namespace rk {
namespace {

// x's gradient must not overwrite the output's gradient, which is read for both inputs.
TEST(SharedInputs, ASumOfATensorWithItselfHasTwiceTheGradient) {
  constexpr std::int64_t kElements = 30;
  for (const bool keep_all : {false, true}) {
    const Context context(1);
    Parameters parameters;
    Program program(context, parameters,
                    {.gradients = true, .input_gradient = true, .keep_all = keep_all});
    const TensorId x = program.input("x", Shape{kElements});
    const TensorId y = add(program, x, x, "twice");
    program.set_output(y);
    program.plan();
    std::fill_n(program.value(x), kElements, 0.5F);
    program.forward();
    std::fill_n(program.gradient(y), kElements, 1.0F);
    program.backward();
    EXPECT_EQ(std::ranges::count(std::span(program.gradient(x), kElements), 2.0F), kElements);
  }
}

TEST(SharedInputs, AResidualIsAnotherTensor) {
  const Context context(1);
  Parameters parameters;
  Program program(context, parameters, {.gradients = true});
  const TensorId x = program.input("x", {1, 4, 4, 8});
  EXPECT_THROW(batchnorm(program, x, "bn", {.residual = x}), std::invalid_argument);
  EXPECT_THROW(conv_bn(program, x, {"conv", "bn", ""}, {8, {3, 3}, {1, 1}, {1, 1}},
                       {.mode = BatchNormMode::kRunning, .residual = x}),
               std::invalid_argument);
}

}  // namespace
}  // namespace rk
