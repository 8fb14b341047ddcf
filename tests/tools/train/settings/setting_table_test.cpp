#include "tools/train/settings/setting_table.h"

#include "engine/base/error.h"
#include "tests/support/messages.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rk {
namespace {

struct Values {
  std::string loss = "fastap";
  double lr = 1e-4;
  std::int64_t batch = 128;
  bool nesterov = false;
  std::vector<double> drop_at;
};

class Settings {
 public:
  explicit Settings(const std::vector<std::string>& words = {}) {
    table.attach(flags);
    table.group("Loss");
    table.add("loss", values.loss, "which");
    table.add("lr", values.lr, "rate").check(above_zero());
    table.group("Rest");
    table.add("batch", values.batch, "images");
    table.add_switch("nesterov", values.nesterov, "ahead");
    table.add("drop-at", values.drop_at, "when").delimiter(',');
    flags.parse(words);
  }
  Flags flags;
  Values values;
  SettingTable table;
};

TEST(SettingTable, FlagsWinOverTheRecipeAndThatOverTheRest) {
  Settings s({"--lr", "0.5"});
  s.table.apply({{"lr", 0.25}, {"batch", 64}}, "recipe.toml");
  s.table.apply({{"lr", 0.125}, {"batch", 32}, {"loss", "smooth_ap"}}, "last.h5");
  EXPECT_EQ(s.values.lr, 0.5);
  EXPECT_EQ(s.values.batch, 64);
  EXPECT_EQ(s.values.loss, "smooth_ap");
}

TEST(SettingTable, TakesEveryKindOfValue) {
  Settings s;
  s.table.apply({{"nesterov", true}, {"drop_at", {10, 20.5}}, {"lr", 1e-05}}, "recipe.toml");
  EXPECT_TRUE(s.values.nesterov);
  EXPECT_EQ(s.values.drop_at, (std::vector<double>{10, 20.5}));
  EXPECT_EQ(s.values.lr, 1e-5);
}

TEST(SettingTable, WhatItWritesItReads) {
  // With characters that TOML or JSON would write otherwise: beyond 16 bits, and 127.
  Settings s({"--loss", "a \"quoted\" \\ name\n \xF0\x9F\x98\x80 \x7F\x7F", "--lr", "3e-7",
              "--nesterov", "--drop-at", "1,2.5"});
  const TemporaryFolder folder;
  folder.write("settings.toml", s.table.toml());
  Settings other;
  other.table.apply(read_recipe(folder.in("settings.toml")), "settings.toml");
  EXPECT_EQ(other.values.loss, s.values.loss);
  EXPECT_EQ(other.table.values(), s.table.values());
  EXPECT_TRUE(holds(s.table.toml(), "# Rest\nbatch = 128\n"));
}

TEST(SettingTable, MistakesNameFileSettingAndTheNearest) {
  Settings s;
  EXPECT_TRUE(holds(message_of<InputError>([&] {
                      s.table.apply({{"bacth", 1}}, "recipe.toml");
                    }),
                    "recipe.toml: no setting 'bacth'; did you mean batch"));
  EXPECT_TRUE(holds(message_of<InputError>([&] {
                      s.table.apply({{"learning_rate", 1}}, "recipe.toml");
                    }),
                    "recipe.toml: no setting 'learning_rate'; did you mean lr?"));
  std::string out;
  s.flags.add("--out", out, "where to");
  EXPECT_TRUE(holds(message_of<InputError>([&] {
                      s.table.apply({{"out", "x"}}, "recipe.toml");
                    }),
                    "recipe.toml: 'out' is no setting of a run; give --out on the command line"));
  EXPECT_TRUE(holds(message_of<InputError>([&] {
                      s.table.apply({{"lr", -1.0}}, "recipe.toml");
                    }),
                    "recipe.toml: lr = -1.0: "));
  EXPECT_TRUE(holds(message_of<InputError>([&] {
                      Settings().table.apply({{"lr", INFINITY}}, "recipe.toml");
                    }),
                    "recipe.toml: lr = inf: --lr: expected a finite number, got inf"));
  EXPECT_TRUE(holds(message_of<InputError>([&] {
                      s.table.apply({{"batch", "many"}}, "r");
                    }),
                    "r: batch = \"many\": is no number; write one"));
}

TEST(SettingTable, ValuesOfAnotherKindAreRefused) {
  const auto refused = [](const nlohmann::ordered_json& values) {
    return message_of<InputError>([&] { Settings().table.apply(values, "r"); });
  };
  EXPECT_EQ(refused({{"drop_at", 1}, {"drop-at", 2}}),
            "r: 'drop_at' and 'drop-at' are one setting; leave one out");
  EXPECT_EQ(refused({{"loss", {"fastap", "x"}}}),
            "r: loss = [\"fastap\",\"x\"]: is no text; write one");
  EXPECT_EQ(refused({{"loss", true}}), "r: loss = true: is no text; write one");
  EXPECT_EQ(refused({{"batch", "8"}}), "r: batch = \"8\": is no number; write one");
  EXPECT_EQ(refused({{"batch", false}}), "r: batch = false: is no number; write one");
  EXPECT_EQ(refused({{"nesterov", 2}}),
            "r: nesterov = 2: is neither true nor false; write one of them");
  EXPECT_EQ(refused({{"nesterov", "yes"}}),
            "r: nesterov = \"yes\": is neither true nor false; write one of them");
  EXPECT_EQ(refused({{"drop-at", {1, "2"}}}),
            "r: drop-at = [1,\"2\"]: is no list of numbers; write one");
  EXPECT_EQ(refused({{"drop-at", "1,2"}}),
            "r: drop-at = \"1,2\": is no list of numbers; write one");
}

TEST(SettingTable, RecipesThatCannotBeRead) {
  const TemporaryFolder folder;
  const auto read = [&](const char* text) {
    folder.write("x.toml", text);
    return message_of<InputError>([&] { read_recipe(folder.in("x.toml")); });
  };
  EXPECT_TRUE(holds(read("lr = 1\nlr = 2\n"), "x.toml: line 2: "));
  EXPECT_TRUE(holds(read("a = 1\nb = \n"), "x.toml: line 2: "));
  EXPECT_TRUE(holds(read("a = 1\n[section]\nb = 2\n"), "x.toml: line 2: section: "));
  EXPECT_TRUE(holds(read("a = 2020-01-01\n"), "line 1: a: is neither"));
  EXPECT_TRUE(holds(read("a = \"x\\u0000y\"\n"), "a: holds a character of value 0"));
  EXPECT_TRUE(holds(read("a = [\"x\", \"\\u0000\"]\n"), "a: holds a character of value 0"));
  EXPECT_TRUE(holds(read("arch = \"resnet18\nlr = 1\n"),
                    "x.toml: line 1: a text has no second quotation mark; texts"));
  EXPECT_TRUE(holds(read("data = folder:photos\n"), "; texts stand in quotes, see recipes/"));
}

// The TOML library recurses over the parts of a name, so too many would exhaust the stack.
TEST(SettingTable, NamesOfManyPartsAreRefused) {
  const TemporaryFolder folder;
  const auto read = [&](const std::string& text) {
    folder.write("x.toml", text);
    return message_of<InputError>([&] { read_recipe(folder.in("x.toml")); });
  };
  const auto name = [](int parts) {
    std::string text = "a";
    for (int i = 1; i < parts; ++i) text += ".a";
    return text;
  };
  const char* const refused = "x.toml: line 2: holds 200000 dots, 100 are read; see recipes/";
  EXPECT_TRUE(holds(read("lr = 1\n" + name(200'001) + " = 1\n"), refused));
  EXPECT_TRUE(holds(read("lr = 1\n[" + name(200'001) + "]"), refused));
  EXPECT_TRUE(holds(read(name(102) + " = 1\n"), "line 1: holds 101 dots"));
  EXPECT_TRUE(holds(read("\n" + name(101) + " = 1\n"), "x.toml: line 2: a: is neither"));
  EXPECT_TRUE(holds(read(std::string(2'000'000, '\n')), "MiB, more than the limit of 1 MiB"));
}

}  // namespace
}  // namespace rk
