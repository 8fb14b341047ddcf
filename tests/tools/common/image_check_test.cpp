#include "tools/common/image_check.h"

#include "data/images/augment.h"
#include "data/images/encode_jpeg.h"
#include "data/sources/open_dataset.h"
#include "engine/base/error.h"
#include "engine/device/context.h"
#include "tests/data/other_libjpeg.h"
#include "tests/data/picture_folder.h"
#include "tests/support/messages.h"
#include "tools/probe/data_survey.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace rk {
namespace {

// No picture is left out for it, however many may be.
TEST(ImageCheck, ALibraryThatReadsNoPictureIsNoFaultOfThePictures) {
  const PictureFolder folder;
  folder.write("a/0.jpg", encode_jpeg(noise_image(24, 18, 1), 90));
  folder.write("a/1.jpg", encode_jpeg(noise_image(24, 18, 2), 90));
  const Dataset data = open_dataset(folder.spec(), Split::kTest);
  const Context context(1);
  const OtherLibjpeg other(18);
  const std::string checked = message_of<DeviceError>(
      [&] { check_images(context, data, 2, folder.path().string(), center_crop(16, 20), true); });
  EXPECT_TRUE(holds(checked, "libjpeg: not the one"));
  const std::string surveyed =
      message_of<DeviceError>([&] { (void)survey(context, data, [](std::int64_t) {}); });
  EXPECT_TRUE(holds(surveyed, "libjpeg: not the one"));
}

}  // namespace
}  // namespace rk
