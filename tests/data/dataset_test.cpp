#include "data/sources/open_dataset.h"

#include "data/sources/known_classes.h"
#include "engine/base/error.h"
#include "engine/base/integers.h"
#include "tests/data/picture_folder.h"
#include "tests/support/heard_notes.h"
#include "tests/support/messages.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <set>

namespace rk {
namespace {

std::vector<std::string> class_names(const Dataset& data) {
  std::vector<std::string> names;
  for (const DataClass& c : data.classes()) names.push_back(c.name);
  return names;
}

std::string input_error(const std::string& spec, Split split = Split::kTrain) {
  return message_of<InputError>([&] { open_dataset(spec, split); });
}
std::string usage_error(const std::string& spec) {
  return message_of<UsageError>([&] { open_dataset(spec, Split::kTrain); });
}

TEST(Folder, ClassesAlone) {
  const PictureFolder folder;
  for (const char* name :
       {"b/2.png", "b/10.png", "b/3.jfif", "a/x.JPG", "a/.hidden.png", "a/notes.txt"}) {
    folder.picture(name, 1);
  }
  const Dataset data = open_dataset(folder.spec(), Split::kTrain);
  EXPECT_EQ(class_names(data), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(data.categories().empty());
  ASSERT_EQ(data.size(), 4);
  EXPECT_EQ(data.items()[0].path, "a/x.JPG");
  EXPECT_EQ(data.items()[1].path, "b/10.png");  // by bytes: '1' before '2'
  EXPECT_EQ(data.items()[2].path, "b/2.png");
  EXPECT_EQ(data.members()[1], (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(data.category(0), -1);
  EXPECT_EQ(data.item_name(1), folder.in("b/10.png"));
  EXPECT_EQ(data.load(0).width(), 24);
}

TEST(Folder, CategoriesAndSplits) {
  const PictureFolder folder;
  for (const char* name : {"train/Greek/c1/a.png", "train/Latin/c1/a.png", "train/Latin/c2/a.png",
                           "test/Korean/c1/a.png"}) {
    folder.picture(name, 1);
  }
  const Dataset train = open_dataset(folder.spec(), Split::kTrain);
  EXPECT_EQ(class_names(train), (std::vector<std::string>{"Greek/c1", "Latin/c1", "Latin/c2"}));
  EXPECT_EQ(train.categories(), (std::vector<std::string>{"Greek", "Latin"}));
  EXPECT_EQ(train.category(2), 1);
  EXPECT_EQ(class_names(open_dataset(folder.spec(), Split::kTest)),
            (std::vector<std::string>{"Korean/c1"}));
  EXPECT_EQ(dataset_splits(read_data_spec(folder.spec())),
            (std::vector<Split>{Split::kTrain, Split::kTest}));
  EXPECT_TRUE(holds(input_error(folder.spec(), Split::kVal), "no val split, there is train, test"));
}

// Classes alone are the whole of training and of testing, and no side of a test.
TEST(Folder, ClassesAloneHaveNoOtherSplit) {
  const PictureFolder folder;
  for (const char* name : {"a/1.png", "b/1.png"}) folder.picture(name, 1);
  for (const Split split : {Split::kTrain, Split::kTest}) {
    EXPECT_EQ(open_dataset(folder.spec(), split).part(), "the whole set (no splits)");
  }
  EXPECT_TRUE(holds(input_error(folder.spec(), Split::kVal),
                    "no val split, for it is not divided; hold classes out with val_classes=0.2"));
  EXPECT_TRUE(holds(input_error(folder.spec(), Split::kQuery), "no query split, for it is not"));
  EXPECT_TRUE(holds(input_error(folder.spec(), Split::kGallery), "or leave the split out"));
}

TEST(Folder, ChosenCategories) {
  const PictureFolder folder;
  for (const char* name : {"Latin/c1/a.png", "Japanese_(katakana)/c1/a.png", "Tagalog/c1/a.png"}) {
    folder.picture(name, 1);
  }
  const Dataset data =
      open_dataset(folder.spec() + ",categories=Tagalog+Japanese_(katakana)", Split::kTest);
  EXPECT_EQ(data.categories(), (std::vector<std::string>{"Japanese_(katakana)", "Tagalog"}));
  EXPECT_EQ(data.size(), 2);
  EXPECT_TRUE(holds(input_error(folder.spec() + ",categories=Tagalock"),
                    "no category 'Tagalock'; did you mean Tagalog?"));
  folder.picture("pl+us/c1/a.png", 1);
  EXPECT_EQ(open_dataset(folder.spec() + ",categories=pl+us", Split::kTest).categories(),
            (std::vector<std::string>{"pl+us"}));
}

TEST(Folder, WhatLiesBesideSplitsIsNotLost) {
  const PictureFolder folder;
  folder.classes("train/a", 2, 2);
  folder.classes("val/b", 2, 2);
  folder.write("notes.txt", "hello");
  EXPECT_EQ(text_of(open_dataset(folder.spec(), Split::kTrain).left_out().files), "1 .txt");
  EXPECT_TRUE(open_dataset(folder.spec(), Split::kVal).left_out().empty());
  folder.picture("stray.png", 1);
  EXPECT_TRUE(holds(input_error(folder.spec()), "'stray.png' lies beside folders"));
}

// Each split keeps those of the chosen categories that it has; none need be in all splits.
TEST(Folder, ChosenCategoriesOfSplits) {
  const PictureFolder folder;
  for (const char* name : {"train/Latin/c1/a.png", "train/Greek/c2/a.png", "val/Thai/c3/a.png",
                           "val/Latin/c4/a.png", "test/Korean/c5/a.png"}) {
    folder.picture(name, 1);
  }
  const std::string spec = folder.spec() + ",categories=Latin+Korean";
  EXPECT_EQ(open_dataset(spec, Split::kTrain).categories(), (std::vector<std::string>{"Latin"}));
  EXPECT_EQ(open_dataset(spec, Split::kVal).categories(), (std::vector<std::string>{"Latin"}));
  EXPECT_EQ(open_dataset(spec, Split::kTest).categories(), (std::vector<std::string>{"Korean"}));
  const std::string none = message_of<InputError>(
      [&] { open_dataset(folder.spec() + ",categories=Latin", Split::kTest); });
  EXPECT_TRUE(
      holds(none, "/test: has none of the categories Latin, but Korean; name one of these"));
  const std::string unknown = message_of<InputError>(
      [&] { open_dataset(folder.spec() + ",categories=Hangul", Split::kTrain); });
  EXPECT_TRUE(holds(unknown, "no category 'Hangul'; known: Greek, Korean, Latin, Thai"));
}

TEST(Folder, FlatFolderIsTrainOrTestAndDividesByClasses) {
  const PictureFolder folder;
  folder.classes("c", 10, 2);
  EXPECT_EQ(open_dataset(folder.spec(), Split::kTrain).classes().size(), 10U);
  EXPECT_EQ(open_dataset(folder.spec(), Split::kTest).classes().size(), 10U);
  EXPECT_EQ(dataset_splits(read_data_spec(folder.spec())), (std::vector<Split>{Split::kTrain}));
  EXPECT_TRUE(holds(input_error(folder.spec(), Split::kVal), "val_classes=0.2"));

  const std::string held = folder.spec() + ",val_classes=0.2";
  EXPECT_EQ(dataset_splits(read_data_spec(held)), (std::vector<Split>{Split::kTrain, Split::kVal}));
  const Dataset train = open_dataset(held, Split::kTrain);
  const Dataset val = open_dataset(held, Split::kVal);
  EXPECT_EQ(train.classes().size(), 8U);
  EXPECT_EQ(class_names(val), (std::vector<std::string>{"c8", "c9"}));
  EXPECT_EQ(val.size(), 4);
  EXPECT_EQ(val.label(0), 0);  // renumbered
  EXPECT_TRUE(holds(input_error(held, Split::kTest),
                    "no test split, there is train, val; ask for one of these (eval: --split train "
                    "or --split val)"));
  EXPECT_EQ(train.part(), "split train");
  EXPECT_EQ(val.part(), "split val");
  // The share is rounded to the nearest number of classes.
  const auto held_of = [&](const char* share) {
    return open_dataset(folder.spec() + ",val_classes=" + share, Split::kVal).classes().size();
  };
  EXPECT_EQ(held_of("0.26"), 3U);
  EXPECT_EQ(held_of("0.24"), 2U);

  // In random order, too, each class is in exactly one of the two splits; another val_seed draws
  // other classes.
  std::set<std::vector<std::string>> drawn;
  for (const char* seed : {"0", "1", "2"}) {
    const std::string random = held + ",val_order=random,val_seed=" + seed;
    std::vector<std::string> all = class_names(open_dataset(random, Split::kVal));
    drawn.insert(all);
    for (const std::string& name : class_names(open_dataset(random, Split::kTrain))) {
      all.push_back(name);
    }
    EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), 10U);
    EXPECT_EQ(all.size(), 10U);
  }
  EXPECT_GE(drawn.size(), 2U);
}

// Whoever draws classes by several seeds must not get the same ones in silence.
TEST(Folder, OptionsOfTheHoldOutWithoutEffectAreNoted) {
  const PictureFolder folder;
  folder.classes("c", 4, 1);
  const auto notes = [&](const std::string& options) {
    const HeardNotes heard;
    open_dataset(folder.spec() + options, Split::kTrain);
    return heard.lines;
  };
  using Lines = std::vector<std::string>;
  EXPECT_EQ(notes(",val_classes=0.5,val_order=random,val_seed=1"), Lines());
  EXPECT_EQ(notes(",val_classes=0.5,val_seed=2"),
            Lines{"val_seed=2: has no effect without val_order=random: the last classes in order "
                  "are held out"});
  EXPECT_EQ(notes(",val_order=random"), Lines{"val_order=random: has no effect without "
                                              "val_classes"});
}

// Of two classes, either may be drawn.
TEST(Folder, AnyClassMayBeHeldOut) {
  const PictureFolder folder;
  folder.classes("c", 2, 1);
  std::set<std::vector<std::string>> drawn;
  for (int seed = 0; seed < 8; ++seed) {
    const std::string spec =
        fmt::format("{},val_classes=0.5,val_order=random,val_seed={}", folder.spec(), seed);
    drawn.insert(class_names(open_dataset(spec, Split::kVal)));
  }
  EXPECT_EQ(drawn.size(), 2U);
}

// merge=3 merges three classes of a category each; classes left over go into the category's last
// one, and a category with fewer than three becomes one class.
TEST(Folder, TrainingClassesCanBeMerged) {
  const PictureFolder folder;
  for (const char* name :
       {"a/c1", "a/c2", "a/c3", "a/c4", "a/c5", "a/c6", "a/c7", "b/c8", "b/c9"}) {
    folder.picture(std::string("train/") + name + "/0.png", 1);
    folder.picture(std::string("train/") + name + "/1.png", 1);
  }
  folder.picture("test/t/d1/0.png", 1);
  folder.picture("test/t/d2/0.png", 1);
  const std::string merged = folder.spec() + ",merge=3";
  const Dataset train = open_dataset(merged, Split::kTrain);
  EXPECT_EQ(class_names(train),
            (std::vector<std::string>{"a/c1+a/c2+a/c3", "a/c4+a/c5+a/c6+a/c7", "b/c8+b/c9"}));
  EXPECT_EQ(train.categories(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(train.part(), "split train");
  const Dataset plain = open_dataset(folder.spec(), Split::kTrain);
  ASSERT_EQ(train.size(), plain.size());
  for (std::int64_t i = 0; i < plain.size(); ++i) {
    EXPECT_EQ(train.item_name(i), plain.item_name(i));
    EXPECT_EQ(train.category(i), plain.category(i));
    const std::string& own = plain.classes()[at(plain.label(i))].name;
    const std::string& of = train.classes()[at(train.label(i))].name;
    EXPECT_TRUE(holds(of, own)) << own << " in " << of;
  }
  EXPECT_NE(train.fingerprint(), plain.fingerprint());
  EXPECT_EQ(class_names(open_dataset(merged, Split::kTest)),
            class_names(open_dataset(folder.spec(), Split::kTest)));
  // Held-out classes are not merged, and no merged class contains them.
  EXPECT_EQ(class_names(open_dataset(merged + ",val_classes=0.34", Split::kVal)),
            (std::vector<std::string>{"a/c7", "b/c8", "b/c9"}));
  EXPECT_EQ(class_names(open_dataset(merged + ",val_classes=0.34", Split::kTrain)),
            (std::vector<std::string>{"a/c1+a/c2+a/c3", "a/c4+a/c5+a/c6"}));
  EXPECT_EQ(open_dataset(folder.spec() + ",merge=1", Split::kTrain).fingerprint(),
            plain.fingerprint());
}

// In any kind of data.
TEST(Glyphs, TrainingClassesCanBeMerged) {
  const std::string spec = "glyphs:classes=6,test_classes=4,alphabets=2,images=2";
  const Dataset apart = open_dataset(spec, Split::kTrain);
  const Dataset merged = open_dataset(spec + ",merge=3", Split::kTrain);
  EXPECT_EQ(merged.classes().size(), 2U);
  std::set<std::string> names;
  for (std::int64_t i = 0; i < apart.size(); ++i) {
    EXPECT_EQ(merged.item_name(i), apart.item_name(i));
    names.insert(merged.item_name(i));
    const Image one = apart.load(i), other = merged.load(i);
    EXPECT_TRUE(std::ranges::equal(std::span(one.data(), one.bytes()),
                                   std::span(other.data(), other.bytes())));
  }
  EXPECT_EQ(names.size(), 12U);
  EXPECT_EQ(open_dataset(spec + ",merge=3", Split::kTest).classes().size(), 4U);
  EXPECT_TRUE(holds(usage_error("glyphs:merg=3"), "did you mean merge?"));
}

// A class that was trained on is recognised by its own name, even if it was part of a merged class
// or read with the split in front of its name.
TEST(KnownClasses, AreFoundHoweverTheyWereRead) {
  const PictureFolder folder;
  folder.classes("train/c", 6, 1);
  folder.classes("test/t", 2, 1);
  const Dataset plain = open_dataset(folder.spec(), Split::kTrain);
  const Dataset merged = open_dataset(folder.spec() + ",merge=3", Split::kTrain);
  const Dataset whole = open_dataset(folder.spec() + ",splits=none", Split::kTrain);
  const Dataset test = open_dataset(folder.spec(), Split::kTest);
  EXPECT_EQ(merged.class_names(),
            (std::vector<std::string>{"c0+c1+c2", "c3+c4+c5", "c0", "c1", "c2", "c3", "c4", "c5"}));
  EXPECT_EQ(plain.class_names(), class_names(plain));
  const auto count = [](const Dataset& trained_on, const Dataset& measured_on) {
    return KnownClasses(trained_on.class_names()).count(measured_on);
  };
  EXPECT_EQ(count(merged, plain), 6);
  EXPECT_EQ(count(plain, merged), 2);
  EXPECT_EQ(count(merged, whole), 6);
  EXPECT_EQ(count(plain, whole), 6);
  EXPECT_EQ(count(whole, plain), 6);
  EXPECT_EQ(count(whole, whole), 8);
  EXPECT_EQ(count(plain, plain), 6);
  for (const Dataset* trained_on : {&plain, &merged}) EXPECT_EQ(count(*trained_on, test), 0);
  // The category is part of the name, a split is not.
  folder.classes("train/k/c", 1, 1);
  const Dataset categories = open_dataset(folder.spec(), Split::kTrain);
  EXPECT_EQ(count(plain, categories), 6);
  EXPECT_EQ(KnownClasses({"l/c0"}).count(categories), 0);
  EXPECT_EQ(KnownClasses({"test/k/c0"}).count(categories), 1);
  // A selection of merged classes still knows their parts.
  EXPECT_EQ(merged.select({1}).class_names(),
            (std::vector<std::string>{"c3+c4+c5", "c3", "c4", "c5"}));
}

TEST(Folder, SmallClassesCanBeLeftOut) {
  const PictureFolder folder;
  folder.classes("big", 2, 3);
  folder.classes("small", 1, 1);
  EXPECT_EQ(open_dataset(folder.spec(), Split::kTrain).classes().size(), 3U);
  EXPECT_EQ(open_dataset(folder.spec() + ",min_images=2", Split::kTrain).classes().size(), 2U);
  EXPECT_TRUE(holds(input_error(folder.spec() + ",min_images=4"), "no class has 4 images"));
  EXPECT_EQ(text_of(open_dataset(folder.spec() + ",min_images=2", Split::kTrain).left_out()),
            "1 class below min_images ('small0')");
  EXPECT_TRUE(open_dataset(folder.spec(), Split::kTrain).left_out().empty());
  folder.write("big0/notes.txt", "hello");
  EXPECT_EQ(text_of(open_dataset(folder.spec() + ",min_images=2", Split::kTrain).left_out()),
            "files that are no images it reads: 1 .txt; 1 class below min_images ('small0')");
}

// A class with a single query picture may have more in the gallery.
TEST(Folder, SmallClassesAreCountedOverBothSidesOfATest) {
  const PictureFolder folder;
  for (const char* name : {"query/a/1.png", "gallery/a/2.png", "query/b/3.png", "gallery/c/4.png",
                           "gallery/d/5.png", "gallery/d/6.png", "gallery/d/7.png"}) {
    folder.picture(name, 1);
  }
  const std::string spec = folder.spec() + ",min_images=2";
  const Dataset query = open_dataset(spec, Split::kQuery);
  EXPECT_EQ(class_names(query), (std::vector<std::string>{"a"}));
  EXPECT_EQ(text_of(query.left_out()), "1 class below min_images ('b')");
  EXPECT_EQ(class_names(open_dataset(spec, Split::kGallery)), (std::vector<std::string>{"a", "d"}));
  EXPECT_EQ(class_names(open_dataset(spec, Split::kTest)), (std::vector<std::string>{"a", "d"}));
  // Without a gallery the query side alone counts.
  std::filesystem::remove_all(folder.path() / "gallery");
  EXPECT_TRUE(holds(input_error(spec, Split::kQuery), "no class has 2 images"));
}

TEST(Folder, FingerprintSeesNamesLabelsAndOrder) {
  const PictureFolder folder;
  folder.classes("c", 3, 2);
  const std::uint64_t before = open_dataset(folder.spec(), Split::kTrain).fingerprint();
  EXPECT_EQ(open_dataset(folder.spec(), Split::kTrain).fingerprint(), before);
  EXPECT_EQ(open_dataset(folder.spec() + ",exif=ignore", Split::kTrain).fingerprint(), before);
  EXPECT_NE(open_dataset(folder.spec() + ",exif=turn", Split::kTrain).fingerprint(), before);
  std::filesystem::rename(folder.path() / "c0/1.png", folder.path() / "c0/2.png");
  EXPECT_NE(open_dataset(folder.spec(), Split::kTrain).fingerprint(), before);
}

// Checkpoints hold it, so that it stays what it is: FNV-1a of names, categories and numbers, each
// ended by a byte that no text holds.
TEST(Folder, FingerprintIsThatOfOlderCheckpoints) {
  const PictureFolder folder;
  folder.picture("x/a/0.png", 1);
  folder.picture("y/b/0.png", 1);
  std::uint64_t expected = 0xCBF29CE484222325;
  for (const char c : std::string("x/a/0/0\xFFy/b/1/0\xFFx/a/0.png/0/0\xFFy/b/0.png/0/1\xFF")) {
    expected = (expected ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  }
  EXPECT_EQ(open_dataset(folder.spec(), Split::kTrain).fingerprint(), expected);
}

TEST(Folder, BadFoldersAreNamed) {
  const PictureFolder folder;
  const std::string root = folder.path().string();
  EXPECT_TRUE(holds(input_error("folder:" + root + "/absent"), "/absent: no such folder"));
  EXPECT_TRUE(holds(usage_error("folder"), "no path given"));
  EXPECT_TRUE(holds(input_error(folder.spec()), "no class folders"));

  folder.picture("one.png", 1);
  EXPECT_TRUE(holds(input_error(folder.spec()), "no class folders in it but 1 image;"));
  EXPECT_TRUE(holds(input_error("folder:" + root + "/one.png"), "not a folder"));

  folder.picture("a/1.png", 1);
  EXPECT_TRUE(holds(input_error(folder.spec()), "'one.png' lies beside folders"));
  std::filesystem::remove(folder.path() / "one.png");

  folder.write("b/readme.txt", "hello");
  EXPECT_TRUE(holds(input_error(folder.spec()), "/b: a class without images (1 .txt)"));
  std::filesystem::remove(folder.path() / "b/readme.txt");
  std::filesystem::copy_file(folder.path() / "a/1.png", folder.path() / "b/old.jpe");
  const Dataset mixed = open_dataset(folder.spec(), Split::kTrain);
  ASSERT_EQ(mixed.size(), 2);
  EXPECT_EQ(mixed.load(1).width(), mixed.load(0).width());  // by its bytes
  std::filesystem::remove(folder.path() / "b/old.jpe");
  EXPECT_EQ(text_of(open_dataset(folder.spec(), Split::kTrain).left_out()), "1 empty folder ('b')");

  folder.picture("b/1.png", 1);
  std::filesystem::create_directory(folder.path() / "b/x.jpg");
  EXPECT_TRUE(holds(input_error(folder.spec()), "/b: has images ('1.png') and folders ('x.jpg')"));
  std::filesystem::remove_all(folder.path() / "b");

  folder.picture("b/c/d/1.png", 1);
  EXPECT_TRUE(holds(input_error(folder.spec()), "/b/c/d: folders too deep"));
  EXPECT_TRUE(holds(input_error(folder.spec()), "class/image, move them up"));
  EXPECT_TRUE(holds(input_error(folder.spec() + ",splits=none"), "for categories: leave it out"));
}

// A folder of a split's name that holds no images is no class.
TEST(Folder, WhatMayBeASplitIsNamed) {
  const PictureFolder folder;
  for (const char* name : {"bus", "car", "tram", "van"}) {
    folder.picture(fmt::format("{}/1.png", name), 1);
  }
  folder.write("train/notes.txt", "hello");
  EXPECT_TRUE(holds(input_error(folder.spec()),
                    "'train' would be a split, 'bus', 'car', 'tram' and 1 more would be none"));
}

// As if it were not there, but listed.
TEST(Folder, AnEmptySplitBesideClassesIsLeftOut) {
  const PictureFolder folder;
  folder.classes("c", 2, 2);
  for (const char* name : {"train", "test"}) {
    std::filesystem::create_directory(folder.path() / name);
  }
  const Dataset data = open_dataset(folder.spec(), Split::kTrain);
  EXPECT_EQ(class_names(data), (std::vector<std::string>{"c0", "c1"}));
  EXPECT_TRUE(data.part().starts_with("the whole set"));
  EXPECT_EQ(text_of(data.left_out()), "2 empty folders ('test', 'train')");
  // The mix of another split and classes stays one.
  folder.picture("val/v/1.png", 1);
  EXPECT_TRUE(holds(input_error(folder.spec()), ": 'val' would be a split, 'c0', 'c1' would be"));
}

TEST(Folder, AMisspeltSplitIsGuessed) {
  const PictureFolder folder;
  folder.classes("train/a", 2, 2);
  folder.classes("Tset/b", 2, 2);
  EXPECT_TRUE(holds(input_error(folder.spec()),
                    "if these are splits, rename 'Tset' to 'test', or "
                    "move 'Tset' out of the folder"));
}

TEST(Folder, LinksAndSpecialFiles) {
  const PictureFolder folder;
  folder.classes("c", 1, 2);
  std::filesystem::create_symlink("0.png", folder.path() / "c0/link.png");
  EXPECT_EQ(open_dataset(folder.spec(), Split::kTrain).size(), 3);

  // A link to nothing is listed as an item; reading it reports the error.
  std::filesystem::create_symlink("nowhere.png", folder.path() / "c0/lost.png");
  const Dataset data = open_dataset(folder.spec(), Split::kTrain);
  ASSERT_EQ(data.size(), 4);
  EXPECT_TRUE(holds(message_of<InputError>([&] { data.load(3); }), "lost.png"));
  std::filesystem::remove(folder.path() / "c0/lost.png");

  std::filesystem::create_symlink("self.png", folder.path() / "c0/self.png");
  EXPECT_TRUE(holds(input_error(folder.spec()), "self.png: a link that leads back to itself"));
  std::filesystem::remove(folder.path() / "c0/self.png");

  std::filesystem::create_directory_symlink(folder.path(),
                                            folder.path() / "c1");  // a loop of folders
  EXPECT_TRUE(holds(input_error(folder.spec()), "c1"));
  std::filesystem::remove(folder.path() / "c1");

  // A link that the system refuses to follow may be a picture or a class.
  for (const char* name : {"c0/far.png", "c2"}) {
    std::filesystem::create_symlink(std::string(300, 'a'), folder.path() / name);
    EXPECT_TRUE(holds(input_error(folder.spec()), std::string(name) + ": cannot be looked at ("));
    std::filesystem::remove(folder.path() / name);
  }

  ASSERT_EQ(mkfifo(folder.in("c0/pipe.png").c_str(), 0600), 0);
  EXPECT_TRUE(holds(input_error(folder.spec()), "pipe.png: neither a file nor a folder"));
}

TEST(Folder, UnreadableFolder) {
  if (geteuid() == 0) GTEST_SKIP() << "the superuser may read everything";
  const PictureFolder folder;
  folder.classes("c", 2, 2);
  std::filesystem::permissions(folder.path() / "c1", std::filesystem::perms::none);
  EXPECT_TRUE(holds(input_error(folder.spec()), "/c1: the folder cannot be read"));
  std::filesystem::permissions(folder.path() / "c1", std::filesystem::perms::owner_all);
}

TEST(Folder, AClassInTwoSplitsIsRefused) {
  const PictureFolder folder;
  folder.picture("train/a/1.png", 1);
  folder.picture("test/a/1.png", 2);
  const auto said = [&](const std::string& more) {
    return fmt::format("{}/test: class 'a' is also in {}/train{}; give each class to one split",
                       folder.path().string(), folder.path().string(), more);
  };
  for (const Split split : {Split::kTrain, Split::kTest}) {
    EXPECT_TRUE(holds(input_error(folder.spec(), split), said("")));
  }
  folder.picture("val/b/1.png", 3);
  folder.picture("test/b/1.png", 4);
  EXPECT_TRUE(holds(input_error(folder.spec()), said(", and 1 other class is in two splits")));
  folder.picture("train/c/1.png", 5);
  folder.picture("val/c/1.png", 6);
  folder.picture("test/c/1.png", 7);
  EXPECT_TRUE(holds(input_error(folder.spec()), "and 2 other classes are in two splits"));
}

TEST(Folder, SplitsByEveryName) {
  const PictureFolder folder;
  folder.picture("TRAINING/a/1.png", 1);
  folder.picture("Dev/b/1.png", 2);
  folder.picture("query/c/1.png", 3);
  folder.picture("Gallery/c/1.png", 4);
  folder.picture("Gallery/d/1.png", 5);
  EXPECT_EQ(dataset_splits(read_data_spec(folder.spec())),
            (std::vector<Split>{Split::kTrain, Split::kVal, Split::kTest, Split::kQuery,
                                Split::kGallery}));
  EXPECT_EQ(open_dataset(folder.spec(), Split::kVal).part(), "split val");
  EXPECT_EQ(open_dataset(folder.spec(), Split::kQuery).size(), 1);
  const Dataset test = open_dataset(folder.spec(), Split::kTest);
  EXPECT_EQ(class_names(test), (std::vector<std::string>{"c", "d"}));
  EXPECT_EQ(test.members()[0].size(), 2U);
  for (std::int64_t i = 0; i < test.size(); ++i) EXPECT_EQ(test.load(i).width(), 24);
  // A test folder is the whole test, whatever lies in the others.
  folder.picture("test/t/1.png", 1);
  EXPECT_EQ(class_names(open_dataset(folder.spec(), Split::kTest)),
            (std::vector<std::string>{"t"}));
  std::filesystem::remove_all(folder.path() / "test");

  // A class must not be both trained on and in the gallery.
  folder.picture("Gallery/a/1.png", 6);
  EXPECT_TRUE(
      holds(input_error(folder.spec()), "/Gallery: class 'a' is also in " + folder.in("TRAINING")));
  std::filesystem::remove_all(folder.path() / "Gallery/a");

  folder.picture("valid/e/1.png", 7);
  EXPECT_TRUE(holds(input_error(folder.spec()), "'Dev' and 'valid' are both the split val"));
  EXPECT_EQ(open_dataset(folder.spec() + ",splits=none", Split::kTrain).categories().size(), 5U);
  EXPECT_TRUE(holds(usage_error(folder.spec() + ",splits=yes"), "splits=yes is neither"));
  EXPECT_EQ(parse_split("VALIDATION"), Split::kVal);
  EXPECT_EQ(parse_split("Gallery"), Split::kGallery);
}

TEST(Dataset, EverySplitIsReadByItsName) {
  std::vector<Split> splits;
  for (const std::string& name : split_names()) splits.push_back(parse_split(name));
  EXPECT_EQ(splits, (std::vector<Split>{Split::kTrain, Split::kVal, Split::kTest, Split::kQuery,
                                        Split::kGallery}));
  EXPECT_EQ(message_of<UsageError>([] { parse_split("x"); }),
            "'x' is no split; known: train, val, test, query, gallery");
}

// Both sides of a test together are in the order of a folder alone.
TEST(Folder, CategoriesOfATestAreInOrder) {
  const PictureFolder folder;
  for (const char* name : {"query/b/x/1.png", "query/b-1/y/1.png", "gallery/b-1/z/1.png"}) {
    folder.picture(name, 1);
  }
  EXPECT_EQ(class_names(open_dataset(folder.spec(), Split::kTest)),
            (std::vector<std::string>{"b/x", "b-1/y", "b-1/z"}));
  EXPECT_EQ(class_names(open_dataset(folder.spec(), Split::kQuery)),
            (std::vector<std::string>{"b/x", "b-1/y"}));
}

TEST(Folder, AClassMayHaveTheNameOfASplit) {
  const PictureFolder folder;
  folder.picture("bus/1.png", 1);
  folder.picture("train/1.png", 2);
  const HeardNotes heard;
  EXPECT_EQ(class_names(open_dataset(folder.spec(), Split::kTrain)),
            (std::vector<std::string>{"bus", "train"}));
  EXPECT_TRUE(open_dataset(folder.spec(), Split::kTest).part().starts_with("the whole set"));
  EXPECT_EQ(heard.lines,
            std::vector<std::string>{folder.path().string() +
                                     ": 'train' holds images itself, beside 'bus', so it is "
                                     "taken for a class; a split holds a folder for each class"});
}

TEST(Folder, ClassesThatSplitsShareAreSeveralWithoutSplits) {
  const PictureFolder folder;
  for (const char* name : {"train/a/1.png", "query/b/1.png", "query/c/1.png", "gallery/c/2.png",
                           "gallery/b/2.png", "gallery/d/1.png"}) {
    folder.picture(name, 1);
  }
  const auto notes = [&](const std::string& more) {
    const HeardNotes heard;
    open_dataset(folder.spec() + more, Split::kTrain);
    return heard.lines;
  };
  EXPECT_EQ(notes(""), std::vector<std::string>());
  EXPECT_EQ(notes(",splits=none"),
            std::vector<std::string>{folder.path().string() +
                                     ": 2 class names are in several splits, as 'b' in gallery and "
                                     "query: with splits=none they are different classes; leave it "
                                     "out if they are not"});
  // Classes of categories may have one name.
  const PictureFolder shop;
  shop.picture("cars/1/1.png", 1);
  shop.picture("boats/1/1.png", 1);
  const HeardNotes heard;
  open_dataset(shop.spec() + ",splits=none", Split::kTrain);
  EXPECT_EQ(heard.lines, std::vector<std::string>());
}

TEST(Folder, WhatIsLeftOutIsCounted) {
  const PictureFolder folder;
  folder.classes("c", 2, 1);
  for (const char* name : {"c0/a.HEIC", "c1/b.heic", "c1/film.mp4", "c0/plain", "__MACOSX/x.png",
                           "@eaDir/y/z.jpg", ".DS_Store"}) {
    folder.write(name, "x");
  }
  const Dataset data = open_dataset(folder.spec() + ",val_classes=0.5", Split::kTrain);
  EXPECT_EQ(text_of(data.left_out().files), "2 .heic, 1 .mp4, 1 without an ending");
  EXPECT_EQ(text_of(open_dataset(folder.spec() + ",merge=2", Split::kTrain).left_out()),
            text_of(data.left_out()));
  for (const char* name : {"c2", "c3", "c4"}) {
    std::filesystem::create_directory(folder.path() / name);
  }
  EXPECT_TRUE(holds(text_of(open_dataset(folder.spec(), Split::kTrain).left_out()),
                    "3 empty folders ('c2', 'c3', 'c4')"));
  std::filesystem::create_directory(folder.path() / "c5");
  const Dataset more = open_dataset(folder.spec(), Split::kTrain);
  EXPECT_EQ(more.classes().size(), 2U);
  EXPECT_EQ(text_of(more.left_out()),
            "files that are no images it reads: 2 .heic, 1 .mp4, 1 without an ending; 4 empty "
            "folders ('c2', 'c3', 'c4', ...)");
  const PictureFolder hollow;
  std::filesystem::create_directories(hollow.path() / "a");
  EXPECT_TRUE(holds(input_error(hollow.spec()), "its folders are empty"));
  // Wherever it lies: beside the categories, beside their classes, on either side of a test.
  const PictureFolder deep;
  deep.classes("query/cars/c", 1, 1);
  deep.classes("gallery/cars/c", 1, 1);
  for (const char* name : {"query/b.heic", "query/cars/c.heic", "query/cars/c0/d.heic",
                           "gallery/cars/e.mp4", "gallery/cars/c0/f.mp4"}) {
    deep.write(name, "x");
  }
  const auto left_out = [&](Split split) {
    return text_of(open_dataset(deep.spec(), split).left_out().files);
  };
  EXPECT_EQ(left_out(Split::kTest), "3 .heic, 2 .mp4");
  EXPECT_EQ(left_out(Split::kQuery), "3 .heic");
  EXPECT_EQ(left_out(Split::kGallery), "2 .mp4");
}

TEST(Folder, ValClassesWhereThereIsAValSplit) {
  const PictureFolder folder;
  folder.picture("train/a/1.png", 1);
  folder.picture("val/b/1.png", 2);
  EXPECT_EQ(open_dataset(folder.spec(), Split::kVal).size(), 1);
  EXPECT_TRUE(holds(input_error(folder.spec() + ",val_classes=0.5"), "has a val split already"));
}

TEST(Dataset, UnknownKindsAndOptionsSuggestNearOnes) {
  EXPECT_TRUE(holds(usage_error("fodler:x"), "did you mean folder?"));
  EXPECT_TRUE(holds(usage_error("fodler:x"), "known: folder:PATH"));
  EXPECT_TRUE(holds(usage_error("sop:x"), "known: folder:PATH"));
  EXPECT_TRUE(holds(usage_error("glyphs:clases=3"), "did you mean classes?"));
  EXPECT_TRUE(holds(usage_error("glyphs:x/y"), "'x/y' is no key=value"));
  EXPECT_TRUE(holds(usage_error("glyphs:val_order=upside"), "val_order=upside"));
  EXPECT_TRUE(holds(usage_error("glyphs:val_classes=1"), "nothing to train on"));
  EXPECT_TRUE(holds(message_of<UsageError>([] { parse_split("tset"); }), "did you mean test?"));
}

// The path of a kind with one comes first, whatever it looks like.
TEST(Dataset, APathMayLookLikeAnOption) {
  EXPECT_EQ(read_data_spec("folder:set=1,exif=turn").path, "set=1");
  EXPECT_EQ(read_data_spec("folder:set=1,exif=turn").options.size(), 1U);
  EXPECT_EQ(read_data_spec("glyphs:classes=7").path, "");
}

TEST(Dataset, HomeIsShort) {
  const char* given = std::getenv("HOME");
  const std::string home = given == nullptr ? "" : given;
  setenv("HOME", "/home/somebody", 1);
  EXPECT_EQ(read_data_spec("folder:~").path, "/home/somebody");
  EXPECT_EQ(read_data_spec("folder:~/pics").path, "/home/somebody/pics");
  EXPECT_EQ(read_data_spec("folder:~pics").path, "~pics");
  EXPECT_EQ(read_data_spec("folder:pics/~").path, "pics/~");
  if (given == nullptr) {
    unsetenv("HOME");
  } else {
    setenv("HOME", home.c_str(), 1);
  }
}

TEST(Dataset, OneClassCannotBeDivided) {
  EXPECT_TRUE(holds(input_error("glyphs:classes=1,val_classes=0.5"), "1 class cannot be divided"));
  EXPECT_EQ(open_dataset("glyphs:classes=2,val_classes=0.9", Split::kTrain).classes().size(), 1U);
}

// Drawn characters have no files to look through.
TEST(Dataset, HelpListsTheKindsThatAProgramTakes) {
  EXPECT_TRUE(holds(dataset_help(), "\nglyphs"));
  EXPECT_TRUE(holds(dataset_help(), "folder:PATH"));
  EXPECT_FALSE(holds(dataset_help(/*only_files=*/true), "glyphs"));
  EXPECT_TRUE(holds(dataset_help(/*only_files=*/true), "folder:PATH"));
}

}  // namespace
}  // namespace rk
