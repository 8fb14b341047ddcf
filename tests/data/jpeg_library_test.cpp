#include "data/images/decode.h"
#include "engine/base/error.h"
#include "engine/system/read_file.h"
#include "tests/data/other_libjpeg.h"
#include "tests/support/messages.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace rk {
namespace {

TEST(JpegLibrary, OfAnotherVersionIsNamedInPlaceOfThePicture) {
  const std::vector<std::byte> file = read_file(
      std::filesystem::path(RK_TEST_GOLDEN) / "images/files/q75_420.jpg", kMaxImageFileBytes);
  const auto why = [&] {
    return message_if_any<DeviceError>([&] { (void)decode_image(file, "x.jpg"); });
  };
  EXPECT_EQ(why(), "");
  {
    const OtherLibjpeg other(18);
    const std::string said = why();
    EXPECT_TRUE(holds(said, "libjpeg: not the one that this program was compiled for (Wrong "));
    EXPECT_TRUE(holds(said, fmt::format("caller expects {})", JPEG_LIB_VERSION + 18)));
  }
  {
    const OtherLibjpeg other(0, 8);
    EXPECT_TRUE(
        holds(why(), "libjpeg: not the one that this program was compiled for (JPEG parameter "));
  }
  EXPECT_EQ(why(), "");
}

}  // namespace
}  // namespace rk
