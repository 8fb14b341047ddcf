#include "tools/train/run/bad_image_log.h"

#include "data/sources/open_dataset.h"
#include "engine/base/error.h"
#include "tests/data/picture_folder.h"
#include "tests/support/messages.h"
#include "tests/support/thread_group.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

namespace rk {
namespace {

using Indices = std::vector<std::int64_t>;

class BadImageLogTest : public testing::Test {
 protected:
  BadImageLogTest() {
    folder_.classes("data/train/c", 2, 3);
    for (const char* name : {"data/train/c0/1.png", "data/train/c1/0.png", "data/train/c1/2.png"}) {
      folder_.write(name, "no picture");
    }
    data_ = std::make_unique<Dataset>(open_dataset("folder:" + folder_.in("data"), Split::kTrain));
  }

  const PictureFolder folder_;
  std::unique_ptr<Dataset> data_;  // pictures 1, 3 and 5 cannot be read
  const std::unique_ptr<ProcessGroup> alone_ = group_of_one();
};

TEST_F(BadImageLogTest, WhatOneProcessMeetsAllKnow) {
  std::array<Indices, 2> known, later;
  std::array<std::vector<std::string>, 2> listed;
  ThreadGroup::run(2, [&](ProcessGroup& processes) {
    const auto rank = static_cast<std::size_t>(processes.rank());
    BadImageLog log(processes, *data_, folder_.in(std::to_string(rank)));
    std::vector<BadImage> mine;
    if (rank == 1) mine = {{5, "five", "five is broken"}, {1, "one", "one is broken"}};
    log.share(mine);
    known[rank] = log.indices(mine);
    if (rank == 0) mine = {{5, "five", "five is broken"}, {3, "three", "three is broken"}};
    later[rank] = log.indices(mine);
    if (rank == 0) {
      std::filesystem::create_directories(folder_.path() / "0");
      listed[rank] = log.list(mine);
    }
  });
  EXPECT_EQ(known[0], Indices({5, 1}));
  EXPECT_EQ(known[1], known[0]);
  EXPECT_EQ(later[0], Indices({5, 1, 3}));  // not yet shared
  EXPECT_EQ(later[1], known[1]);
  ASSERT_EQ(listed[0].size(), 3U);
  EXPECT_TRUE(holds(listed[0][0], "2.png"));  // read again for the reason
  EXPECT_EQ(listed[0][2], "left out: three is broken");
  std::ifstream file(folder_.path() / "0/bad_files.txt");
  EXPECT_EQ(std::count(std::istreambuf_iterator(file), {}, '\n'), 3);
}

TEST_F(BadImageLogTest, OnlySharedOnesAreCounted) {
  BadImageLog log(*alone_, *data_, folder_.path().string());
  const std::vector<BadImage> mine = {{1, "one", "one is broken"}, {3, "three", "broken"}};
  log.require_few(0);
  log.share(mine);
  log.share(mine);
  EXPECT_EQ(log.indices(mine), Indices({1, 3}));
  log.require_few(2);
  EXPECT_TRUE(
      holds(message_of<InputError>([&] { log.require_few(1); }), "2 of 6 images cannot be read"));
}

TEST_F(BadImageLogTest, RecordedPicturesThatCanBeReadAreForgotten) {
  const BadImageLog log(*alone_, *data_, folder_.path().string());
  Indices still;
  for (const BadImage& image : log.still_bad({-1, 5, 0, 1, 6})) still.push_back(image.index);
  EXPECT_EQ(still, Indices({5, 1}));
}

}  // namespace
}  // namespace rk
