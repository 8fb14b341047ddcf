#include "data/images/transform.h"

#include "data/images/resize.h"
#include "engine/base/error.h"
#include "tests/support/goldens/image_goldens.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <vector>

namespace rk {
namespace {

TEST(Transform, EveryGoldenPicture) {
  const golden::ImageGoldens goldens(std::filesystem::path(RK_TEST_GOLDEN) / "images");
  int checked = 0;
  for (const nlohmann::json& entry : goldens.manifest.at("files")) {
    const golden::Decoded decoded = golden::check_decoding(goldens, entry);
    if (!decoded.image) continue;  // decode_test says whether that is right
    EXPECT_EQ(golden::check_transforms(goldens, entry, *decoded.image), "") << entry.at("file");
    ++checked;
  }
  EXPECT_GE(checked, 50);
}

// A picture whose red and green values tell each pixel's column and row.
Image coordinates(int width, int height) {
  Image image(width, height);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      image.pixel(x, y)[0] = static_cast<std::uint8_t>(x + 1);
      image.pixel(x, y)[1] = static_cast<std::uint8_t>(y + 1);
      image.pixel(x, y)[2] = 7;
    }
  }
  return image;
}

// round((size - crop) / 2) with halves to even: 0.5 -> 0, 1.5 -> 2, 2.5 -> 2, 3.5 -> 4.
TEST(Transform, CropOffsetRoundsHalvesToEven) {
  const std::vector<std::pair<int, int>> cases{{4, 0}, {5, 0}, {6, 1},  {7, 2},
                                               {8, 2}, {9, 2}, {10, 3}, {11, 4}};
  for (const auto& [size, offset] : cases) {
    const Image out = apply({0, 0, 0, 4}, coordinates(size, 4));
    ASSERT_EQ(out.width(), 4);
    EXPECT_EQ(out.pixel(0, 0)[0], offset + 1) << size;
    const Image down = apply({0, 0, 0, 4}, coordinates(4, size));
    EXPECT_EQ(down.pixel(0, 0)[1], offset + 1) << size;
  }
}

// One axis is padded and the other cropped, each by its own rule; the odd column or row of zeros
// goes to the right or below.
TEST(Transform, PaddingIsZeroAndItsOddPixelGoesLast) {
  const Image out = apply({0, 0, 0, 6}, coordinates(3, 9));
  ASSERT_EQ(out.width(), 6);
  ASSERT_EQ(out.height(), 6);
  for (int y = 0; y < 6; ++y) {
    for (int x = 0; x < 6; ++x) {
      const bool inside = x >= 1 && x < 4;
      EXPECT_EQ(out.pixel(x, y)[0], inside ? x : 0);
      EXPECT_EQ(out.pixel(x, y)[1], inside ? y + 3 : 0);  // (9 - 6) / 2 = 1.5, to even: row 2
      EXPECT_EQ(out.pixel(x, y)[2], inside ? 7 : 0);
    }
  }
}

TEST(Transform, LongSideIsTruncated) {
  const auto size = [](int width, int height, ImageTransform transform) {
    const ImageSize s = resized_size(width, height, transform);
    return std::pair(s.width, s.height);
  };
  using Pair = std::pair<std::int64_t, std::int64_t>;
  EXPECT_EQ(size(500, 375, {}), Pair(341, 256));  // 341.33
  EXPECT_EQ(size(375, 500, {}), Pair(256, 341));
  EXPECT_EQ(size(300, 299, {}), Pair(256, 256));  // 256.86
  EXPECT_EQ(size(256, 301, {}), Pair(256, 301));
  EXPECT_EQ(size(28, 61, {224, 0, 0, 0}), Pair(224, 488));  // 224 * (61 / 28) is a little less
  EXPECT_EQ(size(1, 65500, {}), Pair(256, 16768000));
  EXPECT_EQ(size(10, 20, {0, 75, 60, 0}), Pair(75, 60));
  EXPECT_EQ(size(10, 20, {0, 0, 0, 0}), Pair(10, 20));
}

// The resized picture of 256 x 16,768,000 pixels would take 12 GiB, its crop takes 150 KB.
TEST(Transform, ExtremeAspectCostsOnlyItsCrop) {
  for (const bool tall : {false, true}) {
    const Image line = tall ? coordinates(1, 65500) : coordinates(65500, 1);
    const Image out = apply({}, line);
    EXPECT_EQ(out.width(), 224);
    EXPECT_EQ(out.height(), 224);
    EXPECT_EQ(out.pixel(100, 100)[2], 7);
    EXPECT_THROW((void)apply({256, 0, 0, 0}, line), InputError);
    EXPECT_THROW((void)apply({65500, 0, 0, 224}, line), InputError);
  }
}

TEST(Transform, ArgumentsAreChecked) {
  const Image image = coordinates(4, 4);
  EXPECT_THROW((void)apply({}, Image()), std::invalid_argument);
  EXPECT_THROW((void)apply({-1, 0, 0, 0}, image), std::invalid_argument);
  EXPECT_THROW((void)apply({0, 3, 0, 0}, image), std::invalid_argument);
  EXPECT_THROW((void)apply({0, 0, 0, -1}, image), std::invalid_argument);
}

TEST(FloatTable, EveryLevelIsTheRoundedFormula) {
  const std::array<float, 3> mean{0.485F, 0.456F, 0.406F};
  const std::array<float, 3> std{0.229F, 0.224F, 0.225F};
  const FloatTable table({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225});
  Image image(256, 1);
  for (int level = 0; level < 256; ++level) {
    for (int c = 0; c < 3; ++c) image.pixel(level, 0)[c] = static_cast<std::uint8_t>(level);
  }
  std::vector<float> planes(image.bytes());
  std::vector<float> pixels(image.bytes());
  table.to_chw(image, planes.data());
  table.to_nhwc(image, pixels.data());
  for (std::size_t level = 0; level < 256; ++level) {
    for (std::size_t c = 0; c < 3; ++c) {
      // volatile forces the compiler to round each step to float32.
      volatile float unit = static_cast<float>(level) / 255.0F;
      volatile float centred = unit - mean[c];
      const float expected = centred / std[c];
      EXPECT_EQ(table.value(static_cast<int>(c), static_cast<std::uint8_t>(level)), expected);
      EXPECT_EQ(planes[c * 256 + level], expected);
      EXPECT_EQ(pixels[level * 3 + c], expected);
    }
  }
}

}  // namespace
}  // namespace rk
