#include "data/images/resize.h"

#include "engine/base/integers.h"
#include "engine/base/random.h"
#include "tests/data/picture_folder.h"
#include "tests/support/goldens/image_goldens.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

namespace rk {
namespace {

bool equal(const Image& a, const Image& b) {
  return a.width() == b.width() && a.height() == b.height() &&
         std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

Image crop(const Image& image, const Box& box) {
  Image out(box.width, box.height);
  for (int y = 0; y < box.height; ++y) {
    std::memcpy(out.row(y), image.pixel(box.left, box.top + y), out.row_bytes());
  }
  return out;
}

// The definition, one value at a time: filters a line of values that lie a step of bytes apart.
void filter_line(const std::uint8_t* in, int in_size, std::size_t in_step, std::uint8_t* out,
                 int out_size, std::size_t out_step) {
  const double scale = static_cast<double>(in_size) / out_size;
  const double filter_scale = std::max(1.0, scale);
  for (int x = 0; x < out_size; ++x) {
    const double centre = (x + 0.5) * scale;
    const int begin = std::max(0, static_cast<int>(centre - filter_scale + 0.5));
    const int end = std::min(in_size, static_cast<int>(centre + filter_scale + 0.5));
    std::vector<double> weights;
    double sum = 0;
    for (int i = begin; i < end; ++i) {
      weights.push_back(std::max(0.0, 1 - std::fabs((i - centre + 0.5) * (1 / filter_scale))));
      sum += weights.back();
    }
    std::int64_t total = 1 << 21;
    for (int i = begin; i < end; ++i) {
      const double weight = weights[at(i - begin)] / sum;
      total += static_cast<std::int64_t>(0.5 + weight * 4194304.0) *
               in[static_cast<std::size_t>(i) * in_step];
    }
    out[static_cast<std::size_t>(x) * out_step] =
        static_cast<std::uint8_t>(std::clamp<std::int64_t>(total >> 22, 0, 255));
  }
}

Image reference_across(const Image& image, int width) {
  Image out(width, image.height());
  for (int y = 0; y < image.height(); ++y) {
    for (int c = 0; c < 3; ++c) {
      filter_line(image.row(y) + c, image.width(), 3, out.row(y) + c, width, 3);
    }
  }
  return out;
}

Image reference_down(const Image& image, int height) {
  Image out(image.width(), height);
  for (std::size_t i = 0; i < image.row_bytes(); ++i) {
    filter_line(image.data() + i, image.height(), image.row_bytes(), out.data() + i, height,
                image.row_bytes());
  }
  return out;
}

Image reference(const Image& image, int width, int height) {
  const int shrink_height = image.height() - height;
  if (shrink_height > 0 && shrink_height > 2 * (image.width() - width)) {
    return reference_across(reference_down(image, height), width);
  }
  return reference_down(reference_across(image, width), height);
}

TEST(Resize, EveryGoldenCase) {
  const golden::ImageGoldens goldens(std::filesystem::path(RK_TEST_GOLDEN) / "images");
  int checked = 0;
  for (const nlohmann::json& entry : goldens.resize.at("cases")) {
    if (!entry.at("required").get<bool>()) continue;
    EXPECT_EQ(golden::check_resize(entry), "") << entry.dump();
    ++checked;
  }
  EXPECT_GE(checked, 56);
}

// Sizes around the numbers of rows and bytes that the passes handle at a time.
TEST(Resize, EqualsTheDefinitionValueByValue) {
  const std::vector<std::pair<int, int>> sizes{{1, 1},  {2, 3},   {3, 17},  {5, 16},  {16, 15},
                                               {17, 5}, {21, 33}, {22, 31}, {64, 40}, {43, 97}};
  for (const auto& [in_width, in_height] : sizes) {
    const Image image = noise_image(in_width, in_height, 7);
    for (const auto& [width, height] : sizes) {
      EXPECT_TRUE(equal(resize(image, width, height), reference(image, width, height)))
          << in_width << " x " << in_height << " to " << width << " x " << height;
    }
  }
}

// Random pictures, source rectangles, target sizes and parts of the result.
TEST(Resize, DrawnCasesEqualTheDefinition) {
  CounterRandom random(random_seed(), 0, 0);
  const auto box_in = [&](int width, int height) {
    Box box;
    box.left = static_cast<int>(random.below(width));
    box.top = static_cast<int>(random.below(height));
    box.width = 1 + static_cast<int>(random.below(width - box.left));
    box.height = 1 + static_cast<int>(random.below(height - box.top));
    return box;
  };
  // Half of the sides are short (up to 12).
  const auto side = [&](int most) {
    return 1 + static_cast<int>(random.below(random.below(2) == 0 ? 12 : most));
  };
  for (int i = 0; i < 400; ++i) {
    const Image image = noise_image(side(150), side(150), static_cast<std::uint64_t>(i));
    const Box source = random.below(2) == 0 ? Box{0, 0, image.width(), image.height()}
                                            : box_in(image.width(), image.height());
    const int width = random.below(5) == 0 ? source.width : side(120);
    const int height = random.below(5) == 0 ? source.height : side(120);
    const Box part = random.below(2) == 0 ? Box{0, 0, width, height} : box_in(width, height);
    ASSERT_TRUE(equal(resize_part(image, source, width, height, part),
                      crop(reference(crop(image, source), width, height), part)))
        << "case " << i << ": " << image.width() << " x " << image.height() << ", of it "
        << source.width << " x " << source.height << " at " << source.left << ", " << source.top
        << " to " << width << " x " << height << ", of that " << part.width << " x " << part.height
        << " at " << part.left << ", " << part.top;
  }
}

// The height shrinks by exactly twice as much as the width: across first. By one row more: down
// first.
TEST(Resize, PassOrderAtItsBoundary) {
  const Image image = noise_image(40, 60, 3);
  const Image across_first = reference_down(reference_across(image, 30), 40);
  ASSERT_FALSE(equal(across_first, reference_across(reference_down(image, 40), 30)));
  EXPECT_TRUE(equal(resize(image, 30, 40), across_first));

  const Image down_first = reference_across(reference_down(image, 39), 30);
  ASSERT_FALSE(equal(down_first, reference_down(reference_across(image, 30), 39)));
  EXPECT_TRUE(equal(resize(image, 30, 39), down_first));
}

// A width that grows by more than 2^30 does not shrink by anything: down first.
TEST(Resize, PassOrderOfTheWidestResults) {
  const Image image = noise_image(40, 60, 3);
  constexpr int kWidth = (1 << 30) + 100;
  constexpr int kLeft = kWidth / 3;
  const Image down_first =
      resize_part(resize(image, 40, 59), {0, 0, 40, 59}, kWidth, 59, {kLeft, 0, 30, 59});
  const Image across_first =
      resize(resize_part(image, {0, 0, 40, 60}, kWidth, 60, {kLeft, 0, 30, 60}), 30, 59);
  ASSERT_FALSE(equal(down_first, across_first));
  EXPECT_TRUE(
      equal(resize_part(image, {0, 0, 40, 60}, kWidth, 59, {kLeft, 0, 30, 59}), down_first));
}

TEST(Resize, PartOfTheResultHasTheSameBytes) {
  const Image image = noise_image(71, 113, 5);
  CounterRandom random(random_seed(), 0, 0);
  for (const auto& [width, height] : std::vector<std::pair<int, int>>{
           {71, 40}, {40, 113}, {53, 90}, {90, 150}, {60, 20}, {71, 113}}) {
    const Image whole = resize(image, width, height);
    for (int i = 0; i < 20; ++i) {
      Box part;
      part.left = static_cast<int>(random.below(width));
      part.top = static_cast<int>(random.below(height));
      part.width = 1 + static_cast<int>(random.below(width - part.left));
      part.height = 1 + static_cast<int>(random.below(height - part.top));
      EXPECT_TRUE(
          equal(resize_part(image, {0, 0, 71, 113}, width, height, part), crop(whole, part)))
          << width << " x " << height << ": " << part.width << " x " << part.height << " at "
          << part.left << ", " << part.top;
    }
  }
}

TEST(Resize, SourceBoxIsACropWithoutTheCopy) {
  const Image image = noise_image(60, 50, 9);
  for (const Box& box :
       {Box{0, 0, 60, 50}, Box{3, 5, 20, 41}, Box{59, 49, 1, 1}, Box{30, 20, 30, 30}}) {
    for (const auto& [width, height] :
         std::vector<std::pair<int, int>>{{30, 30}, {32, 8}, {64, 64}, {20, 41}}) {
      EXPECT_TRUE(
          equal(resize(image, box, width, height), resize(crop(image, box), width, height)));
    }
  }
}

// Weights are rounded one by one. With 5.6 million taps each weight lies between 0.5 and 1 units,
// is rounded up to 1, and white sums to 340, which must be clipped. No picture within decode.h's
// limits is that long.
TEST(Resize, WhiteStaysWhite) {
  for (const auto& [width, height] :
       std::vector<std::pair<int, int>>{{60000, 2}, {2, 60000}, {40, 40}, {1, 5600000}}) {
    Image image(width, height);
    std::memset(image.data(), 255, image.bytes());
    const Image out = resize(image, 1, 1);
    for (std::size_t i = 0; i < out.bytes(); ++i) ASSERT_EQ(out.data()[i], 255) << width;
  }
}

TEST(Resize, ArgumentsAreChecked) {
  const Image image = noise_image(4, 4, 1);
  EXPECT_THROW((void)resize(image, 0, 4), std::invalid_argument);
  EXPECT_THROW((void)resize(image, {1, 0, 4, 4}, 2, 2), std::invalid_argument);
  EXPECT_THROW((void)resize(image, {-1, 0, 4, 4}, 2, 2), std::invalid_argument);
  EXPECT_THROW((void)resize(image, {0, 0, 2147483647, 4}, 2, 2), std::invalid_argument);
  EXPECT_THROW((void)resize_part(image, {0, 0, 4, 4}, 2, 2, {1, 1, 2, 1}), std::invalid_argument);
  EXPECT_THROW((void)resize(Image(), 2, 2), std::invalid_argument);
}

}  // namespace
}  // namespace rk
