// The memory that loading is said to need must equal the sum of its parts.
#include "data/sources/open_dataset.h"
#include "tests/data/picture_folder.h"
#include "tools/train/trainer_within_memory.h"

#include <gtest/gtest.h>

namespace rk {
namespace {

TEST(LoadingBytes, CountRingsPicturesAndWhatIsKept) {
  const PictureFolder folder;
  for (const char* name : {"train/a/0.png", "train/a/1.png", "train/b/0.png", "val/c/0.png"}) {
    folder.picture(name, 1, 50, 40);
  }
  const Dataset train = open_dataset(folder.spec(), Split::kTrain);
  const Dataset held_out = open_dataset(folder.spec(), Split::kVal);
  constexpr std::int64_t kPicture = 3 * 50 * 40, kPixels = 3 * 32 * 32, kAhead = 3;
  TrainSettings settings;
  settings.data = folder.spec();
  settings.image_size = 32;
  settings.batch = 16;
  settings.eval_batch = 200;
  settings.workers = 4;
  settings.cache = 1;
  const LoadingBytes both = loading_bytes(settings, train, &held_out, 2);
  EXPECT_EQ(both.ring, kAhead * 8 * kPixels);
  EXPECT_EQ(both.evaluation_ring, kAhead * 64 * kPixels);  // few images: a smaller batch
  EXPECT_EQ(both.pictures, 2 * 4 * kPicture);
  EXPECT_EQ(both.cache, 3 * kPicture);

  settings.cache = 0;
  const LoadingBytes alone = loading_bytes(settings, train, nullptr, 1);
  EXPECT_EQ(alone.ring, kAhead * 16 * kPixels);
  EXPECT_EQ(alone.evaluation_ring, 0);
  EXPECT_EQ(alone.pictures, 4 * kPicture);
  EXPECT_EQ(alone.cache, 0);
  settings.data += ",exif=turn";
  EXPECT_EQ(loading_bytes(settings, train, nullptr, 1).pictures, 2 * 4 * kPicture);

  // With an unreadable picture the pictures' size is unknown.
  folder.write("train/a/0.png", "no picture");
  settings.cache = 1;
  const LoadingBytes unknown = loading_bytes(settings, train, &held_out, 1);
  EXPECT_EQ(unknown.pictures, 0);
  EXPECT_EQ(unknown.cache, 1 << 20);
}

}  // namespace
}  // namespace rk
