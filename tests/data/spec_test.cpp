#include "data/spec.h"

#include "engine/base/error.h"
#include "tests/support/messages.h"

namespace rk {
namespace {

TEST(DataSpec, KindPathAndOptions) {
  const DataSpec spec =
      parse_data_spec("folder:some/photos,val_classes=0.2,val_order=random", true);
  EXPECT_EQ(spec.kind, "folder");
  EXPECT_EQ(spec.path, "some/photos");
  EXPECT_EQ(spec.options.size(), 2U);
  EXPECT_EQ(spec.number("val_classes", 0, 0, 1), 0.2);
  EXPECT_EQ(spec.get("val_order", ""), "random");
}

TEST(DataSpec, KindAloneAndOptionsAlone) {
  EXPECT_EQ(parse_data_spec("glyphs", false).kind, "glyphs");
  const DataSpec spec = parse_data_spec("glyphs:classes=7,images=3", false);
  EXPECT_EQ(spec.path, "");
  EXPECT_EQ(spec.integer("classes", 0, 1, 10), 7);
  EXPECT_EQ(spec.integer("classes", 0, 1, 7), 7);
  EXPECT_EQ(spec.integer("classes", 0, 7, 9), 7);
  EXPECT_EQ(spec.integer("absent", 5, 1, 10), 5);
}

TEST(DataSpec, CommasColonsAndParenthesesBelongToPathsAndValues) {
  const DataSpec spec =
      parse_data_spec("folder:/a, b/c:d (1),categories=Japanese_(katakana)+Old, new+Tagalog", true);
  EXPECT_EQ(spec.path, "/a, b/c:d (1)");
  EXPECT_EQ(spec.list("categories"),
            (std::vector<std::string>{"Japanese_(katakana)", "Old, new", "Tagalog"}));
}

TEST(DataSpec, APathThatComesFirstMayLookLikeAnOption) {
  const DataSpec spec = parse_data_spec("folder:set=1,exif=turn", true);
  EXPECT_EQ(spec.path, "set=1");
  EXPECT_EQ(spec.get("exif", ""), "turn");
  EXPECT_EQ(parse_data_spec("anything:set=1", true).path, "set=1");
  EXPECT_EQ(parse_data_spec("folder:set=1", false).path, "");
}

TEST(DataSpec, TextIsReadBackTheSame) {
  for (const char* text : {"glyphs", "glyphs:classes=7,images=3", "folder:/a,b", "folder:/a b,x=1",
                           "folder:a=b,x=1"}) {
    for (const bool path_first : {false, true}) {
      EXPECT_EQ(parse_data_spec(text, path_first).text(), text);
    }
  }
}

TEST(DataSpec, WrongFormsAreUsageErrors) {
  EXPECT_TRUE(holds(message_of<UsageError>([] { parse_data_spec("glyphs:a=1,a=2", false); }),
                    "a is given twice"));
  EXPECT_TRUE(holds(message_of<UsageError>([] { parse_key_values("four", "pk"); }),
                    "'four' is no key=value"));
  const DataSpec spec = parse_data_spec("glyphs:classes=seven,images=-1,slant=nan", false);
  EXPECT_TRUE(
      holds(message_of<UsageError>([&] { spec.integer("classes", 0, 1, 9); }), "classes=seven"));
  EXPECT_TRUE(
      holds(message_of<UsageError>([&] { spec.integer("images", 0, 1, 9); }), "from 1 to 9"));
  EXPECT_TRUE(holds(message_of<UsageError>([&] { spec.number("slant", 0, 0, 9); }), "slant=nan"));
  for (const char* names : {"a++b", "+a", "a+", "+", ""}) {
    const DataSpec with = parse_data_spec(std::string("glyphs:list=") + names, false);
    EXPECT_TRUE(holds(message_of<UsageError>([&] { with.list("list"); }), "has an empty name"))
        << names;
  }
}

}  // namespace
}  // namespace rk
