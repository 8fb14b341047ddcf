// A libjpeg that is not the one whose header was compiled in.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>
// jpeglib.h needs FILE and size_t declared before it.
#include <jpeglib.h>

#include "data/images/decode.h"
#include "engine/base/error.h"
#include "engine/system/read_file.h"
#include "tests/support/messages.h"

namespace {

int newer = 0;           // how much the version is above the library's
std::size_t larger = 0;  // and the bytes of its struct

}  // namespace

// The decoder calls this one, not the library's.
void jpeg_CreateDecompress(j_decompress_ptr info, int version, std::size_t bytes) {
  const auto library =
      reinterpret_cast<decltype(&jpeg_CreateDecompress)>(dlsym(RTLD_NEXT, "jpeg_CreateDecompress"));
  library(info, version + newer, bytes + larger);
}

namespace rk {
namespace {

TEST(JpegLibrary, OfAnotherVersionIsNamedInPlaceOfThePicture) {
  const std::vector<std::byte> file = read_file(
      std::filesystem::path(RK_TEST_GOLDEN) / "images/files/q75_420.jpg", kMaxImageFileBytes);
  const auto why = [&] {
    return message_if_any<DeviceError>([&] { (void)decode_image(file, "x.jpg"); });
  };
  EXPECT_EQ(why(), "");
  newer = 18;
  const std::string version = why();
  newer = 0;
  larger = 8;
  const std::string size = why();
  larger = 0;
  EXPECT_TRUE(holds(version, "libjpeg: not the one that this program was compiled for (Wrong "));
  EXPECT_TRUE(holds(version, fmt::format("caller expects {})", JPEG_LIB_VERSION + 18)));
  EXPECT_TRUE(holds(size, "libjpeg: not the one that this program was compiled for (JPEG param"));
  EXPECT_EQ(why(), "");
}

}  // namespace
}  // namespace rk
