#include "engine/base/shape.h"
#include "engine/tape/tensor.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace rk {
namespace {

TEST(Shape, CountsAndCompares) {
  const Shape images{16, 224, 112, 3};
  EXPECT_EQ(images.rank(), 4);
  EXPECT_EQ(images[2], 112);
  EXPECT_EQ(images.elements(), 16 * 224 * 112 * 3);
  EXPECT_EQ(images.text(), "[16, 224, 112, 3]");
  EXPECT_TRUE(images == (Shape{16, 224, 112, 3}));
  EXPECT_FALSE(images == (Shape{16, 224, 112}));
  EXPECT_FALSE(images == (Shape{16, 224, 112, 4}));
}

TEST(Shape, AScalarHasOneElementAndAnEmptyTensorNone) {
  EXPECT_EQ(Shape{}.elements(), 1);
  EXPECT_EQ((Shape{5, 0, 3}).elements(), 0);
  EXPECT_EQ(Shape{}.text(), "[]");
}

TEST(Shape, RefusesNegativeSizesAndAFifthDimension) {
  EXPECT_THROW((Shape{2, -1}), std::invalid_argument);
  EXPECT_THROW((Shape{1, 2, 3, 4, 5}), std::invalid_argument);
  Shape full{1, 2, 3, 4};
  EXPECT_THROW(full.append(5), std::invalid_argument);
}

TEST(Tensor, KnowsItsTypeAndBytes) {
  float values[6] = {};
  const Tensor tensor{values, DType::kFloat32, Shape{2, 3}};
  EXPECT_EQ(tensor.as<float>(), values);
  EXPECT_EQ(tensor.bytes(), 24U);
  EXPECT_THROW((void)tensor.as<std::uint8_t>(), std::invalid_argument);
}

TEST(Tensor, OfADenseOneRowsAndImagesFollowEachOther) {
  const Tensor nhwc = dense_tensor(nullptr, DType::kFloat32, {2, 5, 7, 48});
  EXPECT_EQ(nhwc.row_stride, 48);
  EXPECT_EQ(nhwc.image_stride, 5 * 7 * 48);
  const Tensor blocked = dense_tensor(nullptr, DType::kFloat32, {2, 5, 7, 48}, 16);
  EXPECT_EQ(blocked.row_stride, 16);
  EXPECT_EQ(blocked.image_stride, 5 * 7 * 48);
  const Tensor features = dense_tensor(nullptr, DType::kFloat32, {3, 10});
  EXPECT_EQ(features.row_stride, 10);
  EXPECT_EQ(features.image_stride, 10);
}

}  // namespace
}  // namespace rk
