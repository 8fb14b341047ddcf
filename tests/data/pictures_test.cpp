#include "data/sources/pictures.h"

#include "engine/base/error.h"
#include "tests/data/picture_folder.h"
#include "tests/support/messages.h"

#include <filesystem>

namespace rk {
namespace {

TEST(Pictures, FilesAndFoldersInTheOrderGiven) {
  const PictureFolder folder;
  for (const char* name : {"one.png", "more/b.png", "more/a.png"}) folder.picture(name, 1);
  folder.write("more/notes.txt", "hello");
  const std::string root = folder.path().string();
  const Dataset data = read_pictures({root + "/more", root + "/one.png"}, false);
  ASSERT_EQ(data.size(), 3);
  EXPECT_EQ(data.item_name(0), root + "/more/a.png");
  EXPECT_EQ(data.item_name(1), root + "/more/b.png");
  EXPECT_EQ(data.item_name(2), root + "/one.png");
  EXPECT_EQ(data.load(2).width(), 24);
  EXPECT_TRUE(data.is_one_class());
  EXPECT_EQ(text_of(data.left_out()), "files that are no images it reads: 1 .txt");
}

// What cannot be looked at is not taken for missing.
TEST(Pictures, WhatCannotBeReadIsNamed) {
  const PictureFolder folder;
  const auto why = [&](const std::string& name) {
    return message_of<InputError>([&] { read_pictures({folder.in(name)}, false); });
  };
  EXPECT_TRUE(holds(why("none.png"), "none.png: is not there; check the path"));
  std::filesystem::create_symlink("loop.png", folder.path() / "loop.png");
  EXPECT_TRUE(holds(why("loop.png"), "loop.png: cannot be looked at ("));
  folder.write("texts/a.txt", "hello");
  std::filesystem::create_directory(folder.path() / "texts/inner");
  EXPECT_TRUE(holds(why("texts"), "holds no pictures it reads (1 .txt), and folders inside"));
}

}  // namespace
}  // namespace rk
