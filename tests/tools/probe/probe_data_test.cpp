#include "tools/probe/probe_data.h"

#include "data/images/encode_png.h"
#include "engine/base/text_of.h"
#include "tests/data/rotated_png.h"
#include "tests/tools/probe/probe_run.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

namespace rk {
namespace {

using nlohmann::json;

class ProbeData : public ProbeRun {
 protected:
  int probe(const std::vector<std::string>& arguments) { return run(arguments, make_probe_data()); }
};

TEST_F(ProbeData, TellsWhatAFolderHoldsAndWhatIsWrongWithIt) {
  folder_.classes("shop/train/c", 3, 4);
  folder_.picture("shop/train/lonely/0.png", 7, 100, 50);
  folder_.classes("shop/test/t", 2, 3);
  folder_.write("shop/train/c0/phone.heic", "x");
  folder_.write("shop/train/c1/broken.jpg", "no picture");
  const auto copy = [&](const char* from, const char* to) {
    std::filesystem::copy_file(folder_.path() / from, folder_.path() / to);
  };
  copy("shop/train/c0/0.png", "shop/train/c0/again.png");
  copy("shop/train/c0/1.png", "shop/train/c2/of_c0.png");
  copy("shop/train/c1/1.png", "shop/test/t1/leaked.png");
  EXPECT_EQ(probe({"--data", in("shop"), "--json", in("r.json")}), 3);
  EXPECT_TRUE(holds(error_, "error: folder:" + in("shop") +
                                ": 1 of 23 images cannot be read; mend or remove them (train "
                                "--max-bad 1 and eval --skip-bad leave them out)\n"));
  EXPECT_TRUE(holds(out_, ", split train: 16 images of 4 classes, 1 to 5 in each\n"));
  EXPECT_TRUE(holds(out_, "  pixels: 24 to 100 wide, 18 to 50 high\n"));
  EXPECT_TRUE(holds(out_, "1 .heic"));
  EXPECT_TRUE(holds(out_,
                    "  1 class of a single image, which has no other to find, and which "
                    "training refuses (min_images=2 "
                    "leaves such out):\n    lonely\n"));
  EXPECT_TRUE(holds(out_, "  cannot be read, 1 of them:\n    " + in("shop/train/c1/broken.jpg") +
                              ": not a JPEG, PNG or BMP picture"));
  EXPECT_TRUE(holds(out_, ", split test: 7 images of 2 classes, 3 to 4 in each\n"));
  const json report = json::parse(file_text(in("r.json")));
  EXPECT_EQ(report["splits"].size(), 2U);
  EXPECT_EQ(report["splits"][0]["classes_of_one_image"], json({"lonely"}));
  EXPECT_EQ(report["unreadable"].size(), 1U);
  // t0/0.png equals c0/0.png, and so on: the helper draws by class and number alone.
  bool leaked = false;
  for (const json& group : report["equal_files"]) {
    for (const json& file : group) leaked = leaked || file == in("shop/test/t1/leaked.png");
  }
  EXPECT_TRUE(leaked) << report.dump();
  EXPECT_TRUE(holds(out_, "groups of files with equal content: "));
}

TEST_F(ProbeData, NothingWrongIsZeroAndShort) {
  folder_.picture("flat/a/0.png", 1);
  folder_.picture("flat/a/1.png", 2);
  folder_.picture("flat/b/0.png", 3);
  folder_.picture("flat/b/1.png", 4);
  EXPECT_EQ(probe({"--data", "folder:" + in("flat")}), 0) << error_;
  EXPECT_EQ(out_, "folder:" + in("flat") +
                      ", the whole set (no splits): 4 images of 2 classes, 2 in each\n"
                      "  pixels: 24 wide, 18 high\n");
  EXPECT_EQ(probe({"--data", "glyphs"}), 2);
  EXPECT_TRUE(holds(error_, "is drawn, so that there are no files to look at"));
  EXPECT_EQ(probe({"--data", in("none")}), 2);
}

TEST_F(ProbeData, TheSidesOfAllPicturesAreTold) {
  folder_.picture("flat/a/0.png", 1, 40, 10);
  folder_.picture("flat/a/1.png", 2, 10, 30);
  EXPECT_EQ(probe({"--data", "folder:" + in("flat")}), 0) << error_;
  EXPECT_TRUE(holds(out_, "  pixels: 10 to 40 wide, 10 to 30 high\n"));
}

// More pictures than are looked at between two checks for signals.
TEST_F(ProbeData, EveryPictureIsLookedAt) {
  for (std::uint64_t i = 0; i < 70; ++i) folder_.picture(fmt::format("many/a/{}.png", i), i);
  folder_.picture("many/b/0.png", 100, 20, 60);
  folder_.picture("many/b/1.png", 101, 30, 30);  // wider, but smaller
  folder_.write("many/b/2.png", rotated_png(text_of(encode_png(noise_image(24, 18, 102)))));
  folder_.write("many/b/3.png", "no picture");
  EXPECT_EQ(probe({"--data", in("many"), "--json", in("r.json")}), 3);
  EXPECT_TRUE(holds(out_,
                    ": 74 images of 2 classes, 4 to 70 in each\n"
                    "  pixels: 20 to 30 wide, 18 to 60 high\n"
                    "  stored rotated or mirrored (EXIF): 1, used as stored; "));
  EXPECT_TRUE(holds(out_, "  cannot be read, 1 of them:\n    " + in("many/b/3.png") + ": "));
  const json split = json::parse(file_text(in("r.json")))["splits"][0];
  EXPECT_EQ(split["smallest"], json({24, 18}));
  EXPECT_EQ(split["largest"], json({20, 60}));
  EXPECT_EQ(split["lying"], 1);
  EXPECT_EQ(split["unreadable"], 1);
  EXPECT_EQ(split["fewest_in_a_class"], 4);
  EXPECT_EQ(split["most_in_a_class"], 70);
  EXPECT_EQ(json::parse(file_text(in("r.json")))["equal_files"], json::array());
}

TEST_F(ProbeData, TenOfManyAreNamed) {
  const auto expect_more = [&](const char* folder, bool more) {
    EXPECT_EQ(probe({"--data", in(folder)}), 0) << error_;
    EXPECT_TRUE(holds(out_, "    c8\n    c9\n"));
    EXPECT_FALSE(holds(out_, "    d10\n")) << out_;
    EXPECT_EQ(out_.find(" more, all in --json FILE\n") != std::string::npos, more) << out_;
  };
  for (std::uint64_t i = 0; i < 11; ++i) {
    if (i < 10) folder_.picture(fmt::format("ten/c{}/0.png", i), i);
    folder_.picture(fmt::format("eleven/{}{}/0.png", i < 10 ? "c" : "d", i), i);
  }
  expect_more("ten", false);
  expect_more("eleven", true);
}

TEST_F(ProbeData, EqualFilesAreCountedByWhereTheyLie) {
  const std::pair<const char*, std::uint64_t> pictures[] = {
      {"train/a/0", 1}, {"train/a/1", 1}, {"train/b/0", 2}, {"train/c/0", 2},
      {"train/d/0", 3}, {"test/e/0", 3},  {"test/e/1", 4}};
  for (const auto& [name, seed] : pictures) folder_.picture(fmt::format("set/{}.png", name), seed);
  EXPECT_EQ(probe({"--data", in("set")}), 0) << error_;
  EXPECT_TRUE(holds(out_, "equal content: 3 (in different classes 2, in different splits 1)\n"));
}

// A set without a split `val`, or with an empty folder of that name, is looked through as it is.
TEST_F(ProbeData, ASplitThatIsMissingOrEmptyHidesNoOther) {
  folder_.classes("shop/train/c", 2, 3);
  folder_.classes("shop/test/t", 2, 2);
  const auto expect_both = [&] {
    EXPECT_EQ(probe({"--data", in("shop"), "--json", in("r.json"), "--force"}), 0) << error_;
    EXPECT_TRUE(holds(out_, ", split train: 6 images of 2 classes, 3 in each\n"));
    EXPECT_TRUE(holds(out_, ", split test: 4 images of 2 classes, 2 in each\n"));
    EXPECT_EQ(json::parse(file_text(in("r.json")))["splits"].size(), 2U);
  };
  expect_both();
  EXPECT_FALSE(holds(out_, "left out")) << out_;
  std::filesystem::create_directories(in("shop/val"));
  expect_both();
  const std::string told = "  left out: 1 empty folder ('" + in("shop/val") + "')\n";
  EXPECT_TRUE(holds(out_, told));
  EXPECT_EQ(out_.find(told), out_.rfind(told)) << out_;
  const json splits = json::parse(file_text(in("r.json")))["splits"];
  EXPECT_EQ("  left out: " + splits.at(0).at("left_out").get<std::string>() + "\n", told);
  for (const char* split : {"train", "test"}) std::filesystem::remove_all(in("shop") + "/" + split);
  std::filesystem::create_directories(in("shop/test"));
  EXPECT_EQ(probe({"--data", in("shop")}), 3);
  EXPECT_TRUE(holds(error_, "shop/val: no class folders in it"));
}

TEST_F(ProbeData, WhatCannotBeTrainedOnOrFoundIsTold) {
  folder_.classes("shop/train/c", 1, 3);
  folder_.classes("shop/val/v", 1, 1);
  folder_.classes("shop/test/t", 2, 1);
  ASSERT_EQ(probe({"--data", in("shop")}), 0) << error_;
  const std::string nothing_to_tell =
      "  all of it is one class: there is nothing to tell apart, and no loss learns from it\n";
  const std::string all_is_right =
      "  all of it is one class: whatever is found is right, and its metrics mean nothing\n"
      "  1 class of a single image, which has no other to find (min_images=2 leaves such out):\n"
      "    v0\n";
  const std::string two_alone =
      "  2 classes of a single image, which has no other to find (min_images=2 leaves such out):\n"
      "    t0\n    t1\n";
  const std::size_t train = out_.find(nothing_to_tell), val = out_.find(all_is_right),
                    test = out_.find(two_alone);
  ASSERT_NE(test, out_.npos) << out_;
  EXPECT_LT(train, val) << out_;
  EXPECT_LT(val, test) << out_;
  EXPECT_EQ(out_.find("one class", test), out_.npos) << out_;
}

TEST_F(ProbeData, BothSidesOfATestAreLookedAtOnce) {
  folder_.picture("two/query/a/0.png", 1);
  folder_.picture("two/gallery/a/0.png", 2);
  folder_.picture("two/train/b/0.png", 3);
  folder_.picture("two/train/b/1.png", 3);
  folder_.picture("two/gallery/c/0.png", 4);
  EXPECT_EQ(probe({"--data", in("two"), "--json", in("r.json")}), 0) << error_;
  const json report = json::parse(file_text(in("r.json")));
  ASSERT_EQ(report["splits"].size(), 3U) << report.dump();
  EXPECT_EQ(report["splits"][1]["part"], "split query");
  EXPECT_EQ(report["splits"][2]["part"], "split gallery");
  // The class of a single query picture has another picture in the gallery.
  EXPECT_EQ(report["splits"][1]["classes_of_one_image"], json::array());
  EXPECT_EQ(report["splits"][2]["classes_of_one_image"], json({"c"}));
  EXPECT_EQ(report["equal_files"].size(), 1U);
  EXPECT_TRUE(
      holds(out_,
            "groups of files with equal content: 1 (in different classes 0, in different splits "
            "0)\n    " +
                in("two/train/b/0.png") + " = " + in("two/train/b/1.png")));
}

// A picture on both the query and the gallery side finds itself, which must be reported.
TEST_F(ProbeData, APictureOnBothSidesOfATestIsSeen) {
  folder_.picture("sides/query/a/0.png", 1);
  folder_.picture("sides/gallery/a/0.png", 1);
  EXPECT_EQ(probe({"--data", in("sides")}), 0) << error_;
  EXPECT_TRUE(holds(out_, "equal content: 1 (in different classes 0, in different splits 1)"));
  folder_.picture("sides/test/t/0.png", 2);
  folder_.picture("sides/test/t/1.png", 3);
  EXPECT_EQ(probe({"--data", in("sides")}), 0) << error_;
  for (const char* split : {"query", "gallery", "test"}) {
    EXPECT_TRUE(holds(out_, fmt::format("split {}: ", split)));
  }
}

}  // namespace
}  // namespace rk
