#include "data/images/encode_jpeg.h"

#include "data/images/decode.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

namespace rk {
namespace {

Image waves(int width, int height) {
  Image image(width, height);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < Image::kChannels; ++c) {
        image.pixel(x, y)[c] =
            static_cast<std::uint8_t>(128 + 100 * std::sin((x + 2 * c) / 9.0) * std::cos(y / 11.0));
      }
    }
  }
  return image;
}

double mean_difference(const Image& a, const Image& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.bytes(); ++i) sum += std::abs(a.data()[i] - b.data()[i]);
  return sum / static_cast<double>(a.bytes());
}

TEST(EncodeJpeg, TheDecoderReadsThePictureBack) {
  for (const auto& [width, height] : {std::pair{96, 72}, {1, 1}, {7, 200}, {33, 16}}) {
    const Image image = waves(width, height);
    const std::vector<std::byte> file = encode_jpeg(image, 90);
    const Image read = decode_image(file, "made.jpg");
    ASSERT_EQ(read.width(), width);
    ASSERT_EQ(read.height(), height);
    // Quality 90 and halved chroma cost smooth waves one or two of 255 levels; swapped channels or
    // rows would differ by some 20.
    EXPECT_LT(mean_difference(read, image), 4) << width << "x" << height;
  }
}

TEST(EncodeJpeg, LessQualityTakesFewerBytes) {
  const Image image = waves(96, 96);
  EXPECT_LT(encode_jpeg(image, 40).size(), encode_jpeg(image, 95).size());
  EXPECT_LT(encode_jpeg(image, 72).size(), 4000U);
}

}  // namespace
}  // namespace rk
