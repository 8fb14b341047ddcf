#include "tools/train/held_out.h"

#include "engine/base/error.h"
#include "tests/data/picture_folder.h"
#include "tests/support/messages.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace rk {
namespace {

// Class number c has c + 1 images; nothing loads them.
Dataset stairs(std::int64_t classes) {
  std::vector<DataItem> items;
  std::vector<DataClass> of;
  for (std::int64_t c = 0; c < classes; ++c) {
    of.push_back({fmt::format("c{}", c)});
    for (std::int64_t i = 0; i <= c; ++i) items.push_back({fmt::format("{}/{}", c, i), 0, c});
  }
  return {"stairs", std::move(items), std::move(of), {}, nullptr};
}

// Two classes at least, since a single one has nothing to be told from.
TEST(TrainingSample, IsOfWholeClassesUntilTheyAreEnough) {
  const Dataset all = stairs(9);
  std::set<std::string> drawn;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    for (const std::int64_t images : {1, 10, 20, 44, 45, 100}) {
      SCOPED_TRACE(fmt::format("seed {}, {} images", seed, images));
      const Dataset sample = training_sample(all, images, seed);
      std::int64_t last = -1, largest = 0;
      for (std::size_t c = 0; c < sample.classes().size(); ++c) {
        const std::string& name = sample.classes()[c].name;
        const std::int64_t number = name[1] - '0';
        const auto size = static_cast<std::int64_t>(sample.members()[c].size());
        EXPECT_GT(number, last);
        EXPECT_EQ(size, number + 1);
        last = number;
        largest = std::max(largest, size);
        drawn.insert(fmt::format("{} of {}", name, images));
      }
      EXPECT_GE(sample.size(), std::min(images, all.size()));
      EXPECT_GE(sample.classes().size(), 2U);
      if (sample.classes().size() > 2) {
        EXPECT_LT(sample.size() - largest, images);
      }
      EXPECT_EQ(training_sample(all, images, seed).class_names(), sample.class_names());
    }
  }
  EXPECT_EQ(drawn.size(), 6U * 9U);  // any class may be drawn
}

std::string held_out_part(const std::string& data, const std::string& test_data = "") {
  TrainSettings settings;
  settings.data = data;
  settings.test_data = test_data;
  const std::optional<Dataset> held = open_held_out(settings);
  return held ? held->part() : "nothing";
}

TEST(HeldOut, IsTheFirstSplitAfterTraining) {
  const PictureFolder folder;
  folder.classes("train/a", 2, 1);
  folder.classes("query/q", 2, 1);
  folder.classes("gallery/q", 2, 1);
  EXPECT_EQ(held_out_part(folder.spec()), "split test");
  EXPECT_EQ(held_out_part(folder.spec() + ",val_classes=0.5"), "split val");
  folder.classes("val/v", 2, 1);
  EXPECT_EQ(held_out_part(folder.spec()), "split val");
  EXPECT_EQ(held_out_part(folder.spec(), "none"), "nothing");
}

// Of a set of its own the test, or all of it, or the last that it has.
TEST(HeldOut, OfAnotherSetIsItsTest) {
  const PictureFolder folder, other;
  folder.classes("c", 2, 1);
  other.classes("train/a", 2, 1);
  other.classes("val/v", 2, 1);
  EXPECT_EQ(held_out_part(folder.spec(), folder.spec()), "the whole set (no splits)");
  EXPECT_EQ(held_out_part(folder.spec(), other.spec()), "split val");
  other.classes("query/q", 2, 1);
  other.classes("gallery/q", 2, 1);
  EXPECT_EQ(held_out_part(folder.spec(), other.spec()), "split test");
  EXPECT_TRUE(holds(message_of<UsageError>([&] { held_out_part(folder.spec()); }),
                    "holds no classes out to evaluate on; add ,val_classes=0.2"));
}

}  // namespace
}  // namespace rk
