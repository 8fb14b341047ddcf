// The inputs of a concatenation lie in its output, written there by the nodes that make them,
// unless another node reads them too or they cannot be written there. The result is always the
// same.
#include "layers/concat.h"

#include "layers/batchnorm.h"
#include "layers/onednn/convolution_block.h"
#include "layers/pool.h"
#include "tests/support/node_harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace rk {
namespace {

// Two normalisations of one image and two poolings, joined; if `shared`, a pooling also reads the
// second normalisation.
class Branches {
 public:
  Branches(bool keep_all, bool shared)
      : program_(context_, parameters_,
                 {.gradients = true, .input_gradient = true, .keep_all = keep_all}) {
    const Shape shape = {3, 5, 4, 2 * block_};
    x_ = program_.input("x", shape, block_);
    first_ = batchnorm(program_, x_, "first", {.relu = true});
    second_ = batchnorm(program_, x_, "second", {.relu = true});
    average_ =
        average_pool(program_, shared ? second_ : x_, "average", {{3, 3}, {1, 1}, {1, 1}, false});
    max_ = max_pool(program_, x_, "max", {{3, 3}, {1, 1}, {1, 1}, false});
    joined_ = concat(program_, {first_, second_, average_, max_}, "joined");
    program_.set_output(joined_);
    program_.plan();
    parameters_.initialise(context_, 3);
    std::ranges::copy(noise(shape.elements(), 1), program_.value(x_));
    program_.forward();
    const std::int64_t count = program_.shape(joined_).elements();
    output.assign(program_.value(joined_), program_.value(joined_) + count);
    for (const TensorId id : {first_, second_, average_, max_}) read.push_back(program_.read(id));
    std::ranges::copy(noise(count, 2), program_.gradient(joined_));
    program_.backward();
    input_gradient.assign(program_.gradient(x_), program_.gradient(x_) + shape.elements());
    gradients.assign(parameters_.gradients().begin(), parameters_.gradients().end());
  }

  // Whether that tensor lies in the output, after `channels` other channels.
  bool lies_in(TensorId id, std::int64_t channels) const {
    const Tensor part = program_.value_of(id), whole = program_.value_of(joined_);
    return part.data == program_.value(joined_) + channels * 5 * 4 &&
           part.image_stride == whole.image_stride;
  }
  bool first_lies_in() const { return lies_in(first_, 0); }
  bool second_lies_in() const { return lies_in(second_, 2 * block_); }
  bool pooled_lie_in() const { return lies_in(average_, 4 * block_) && lies_in(max_, 6 * block_); }

  std::vector<float> output, input_gradient, gradients;
  std::vector<std::vector<float>> read;  // values of the four joined tensors

 private:
  std::int64_t block_ = convolution_block();
  Context context_{2};
  Parameters parameters_;
  Program program_;
  TensorId x_ = -1, first_ = -1, second_ = -1, average_ = -1, max_ = -1, joined_ = -1;
};

TEST(Concat, InputsAreWrittenInPlaceAndChangeNoBit) {
  if (convolution_block() == 0) GTEST_SKIP() << "no blocks of channels on this processor";
  for (const bool shared : {false, true}) {
    const Branches joined(/*keep_all=*/false, shared), apart(/*keep_all=*/true, shared);
    EXPECT_TRUE(joined.first_lies_in());
    EXPECT_EQ(joined.second_lies_in(), !shared);
    EXPECT_TRUE(joined.pooled_lie_in());
    EXPECT_FALSE(apart.first_lies_in());
    EXPECT_EQ(joined.output, apart.output);
    EXPECT_EQ(joined.read, apart.read);
    EXPECT_EQ(joined.input_gradient, apart.input_gradient);
    EXPECT_EQ(joined.gradients, apart.gradients);
  }
}

TEST(Concat, ImagesOfAnotherSizeAreRefused) {
  const Context context(1);
  Parameters parameters;
  Program program(context, parameters, {});
  const TensorId a = program.input("a", {2, 3, 3, 4}), b = program.input("b", {2, 3, 4, 4});
  EXPECT_THROW(concat(program, {a, b}, "joined"), std::invalid_argument);
}

}  // namespace
}  // namespace rk
