#include "tools/train/settings/recipe_path.h"

#include "engine/base/error.h"
#include "tests/support/messages.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace rk {
namespace {

TEST(RecipePath, AFileComesBeforeThoseThatComeAlong) {
  const TemporaryFolder folder;
  folder.write("along/omniglot.toml", "");
  folder.write("along/shop.toml", "");
  folder.write("mine.toml", "");
  const std::vector<std::filesystem::path> folders = {folder.path() / "none",
                                                      folder.path() / "along"};
  const std::string mine = folder.in("mine.toml");
  EXPECT_EQ(find_recipe(mine, folders), mine);
  const std::string along = folder.in("along/omniglot.toml");
  EXPECT_EQ(find_recipe("omniglot", folders), along);
  EXPECT_EQ(find_recipe("omniglot.toml", folders), along);
  EXPECT_TRUE(holds(message_of<InputError>([&] { find_recipe("omnigot", folders); }),
                    "omnigot: no such recipe; check the path (did you mean omniglot?)"));
  EXPECT_TRUE(holds(message_of<InputError>([&] { find_recipe("zzzzzz", folders); }),
                    "known: omniglot, shop"));
  EXPECT_EQ(message_of<InputError>([&] { find_recipe("a/omniglot", folders); }),
            "a/omniglot: no such recipe; check the path");
  folder.write("run/settings.toml", "");
  const std::string run = folder.in("run");
  EXPECT_EQ(message_of<InputError>([&] { find_recipe(run, folders); }),
            run + ": is a folder; the settings of its run are " + run + "/settings.toml");
}

// If the data are missing, train's message refers to the recipe's first lines.
TEST(RecipePath, EachThatComesAlongSaysWhereItsDataAre) {
  int recipes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(RK_TEST_GOLDEN "/../../recipes")) {
    ++recipes;
    std::ifstream file(entry.path());
    bool said = false;
    for (std::string line; std::getline(file, line) && line.starts_with('#');) {
      said = said || line.find("https://") != std::string::npos;
    }
    EXPECT_TRUE(said) << entry.path();
  }
  EXPECT_GE(recipes, 3);
}

}  // namespace
}  // namespace rk
