#include "data/images/encode_png.h"

#include "data/images/decode.h"
#include "engine/base/text_of.h"
#include "tests/data/picture_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>

namespace rk {
namespace {

bool is_ours(const std::string& bytes) {
  std::istringstream file(bytes);
  return is_encoded_by_rankine(file);
}

// Noise cannot be compressed and makes the file larger than its pixels.
TEST(EncodePng, PixelsComeBack) {
  for (const auto& [width, height] : {std::pair{1, 1}, std::pair{3, 500}, std::pair{700, 300}}) {
    const Image image = noise_image(width, height, 7);
    const Image back = decode_image(encode_png(image), "noise");
    ASSERT_EQ(back.width(), width);
    ASSERT_EQ(back.height(), height);
    EXPECT_TRUE(std::equal(image.data(), image.data() + image.bytes(), back.data()));
  }
}

TEST(EncodePng, SaysWhoWroteIt) {
  const std::string ours(text_of(encode_png(noise_image(8, 8, 7))));
  EXPECT_TRUE(is_ours(ours));
  const std::size_t writer = ours.find("Rankine");
  ASSERT_NE(writer, std::string::npos);
  std::string others = ours;
  others.replace(writer, 7, "Krita 5");
  EXPECT_FALSE(is_ours(others));
  for (const std::size_t cut : {std::size_t{0}, std::size_t{8}, std::size_t{12}, writer + 6}) {
    EXPECT_FALSE(is_ours(ours.substr(0, cut))) << cut;
  }
  EXPECT_FALSE(is_ours("\xff\xd8" + ours.substr(2)));
  // Not ours: our chunk after the pixels, where we never write it, and a chunk of maximal length.
  const std::size_t chunk = writer - 17, length = 28;
  std::string after = ours;
  after.erase(chunk, length);
  after.insert(after.size() - 12, ours.substr(chunk, length));
  EXPECT_FALSE(is_ours(after));
  EXPECT_FALSE(is_ours(ours.substr(0, 8) + "\xff\xff\xff\xffteXt" + ours.substr(8)));
  // Another text of the same length in front of ours says nothing.
  EXPECT_TRUE(is_ours(ours.substr(0, chunk) + others.substr(chunk, length) + ours.substr(chunk)));
}

}  // namespace
}  // namespace rk
