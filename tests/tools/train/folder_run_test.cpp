// Folders of pictures as users have them, through the real programs: which split is which, which
// classes of two files are the same, and what a network has seen before.
#include "tests/tools/train/folder_run.h"
#include "data/images/encode_png.h"
#include "data/images/resize.h"
#include "tests/support/read_image.h"

#include "engine/system/usable_cores.h"
#include "retrieval/files/embeddings_file.h"
#include "tests/data/rotated_png.h"
#include "tests/support/messages.h"
#include "tests/support/words.h"
#include "weights/checkpoint.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

namespace rk {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Both sides hold the same pictures, so if classes are matched by name, each query finds itself
// first and is right.
TEST_F(FolderRun, AGalleryIsMatchedByTheNamesOfItsClasses) {
  folder_->classes("queries/q", 6, 3);
  folder_->classes("same/q", 6, 3);
  folder_->classes("more/q", 6, 3);
  folder_->picture("more/AAA_first/0.png", 777);
  for (const char* name : {"queries", "same", "more"}) {
    const Finished done = embed(name, std::string(name) + ".h5");
    ASSERT_EQ(done.code, 0) << done.err;
  }
  for (const char* gallery : {"same.h5", "more.h5"}) {
    for (const bool from_file : {true, false}) {
      const std::vector<std::string> queries =
          from_file ? std::vector<std::string>{"--embeddings", in("queries.h5")}
                    : std::vector<std::string>{"--checkpoint", best(), "--data",
                                               "folder:" + in("queries")};
      const Finished found =
          eval(joined(queries, {"--gallery", in(gallery), "--json", in("g.json")}));
      ASSERT_EQ(found.code, 0) << found.err;
      EXPECT_TRUE(holds(found.out, "6 of the 6 searched for among them (by name)"));
      EXPECT_EQ(result("g.json")["metrics"]["recall_at_1"], 1.0) << gallery << found.out;
      EXPECT_EQ(result("g.json")["shared_classes"], 6);
    }
  }

  // If one side has no names, labels would be compared with positions in the other side's list.
  EmbeddingSet unnamed = read_embeddings(in("more.h5"));
  unnamed.classes.clear();
  write_embeddings(in("unnamed.h5"), unnamed);
  const Finished refused = eval({"--embeddings", in("queries.h5"), "--gallery", in("unnamed.h5")});
  EXPECT_EQ(refused.code, 3);
  EXPECT_TRUE(holds(refused.err, in("unnamed.h5") + ": its labels are numbers, but"));
  const Finished by_label = eval({"--embeddings", in("unnamed.h5"), "--gallery", in("unnamed.h5")});
  EXPECT_EQ(by_label.code, 0) << by_label.err;
  EXPECT_TRUE(holds(by_label.out, "(by label)"));
  EXPECT_TRUE(holds(by_label.err, "is both queries and gallery"));
  // With cameras no row is a candidate of its own.
  unnamed.cameras.assign(unnamed.labels.size(), 1);
  write_embeddings(in("cameras.h5"), unnamed);
  const Finished cameras = eval({"--embeddings", in("cameras.h5"), "--gallery", in("cameras.h5")});
  EXPECT_EQ(cameras.code, 0) << cameras.err;
  EXPECT_FALSE(holds(cameras.err, "is both queries and gallery")) << cameras.err;
}

TEST_F(FolderRun, AGalleryOfAnotherNetworkIsRefused) {
  const Finished other =
      train("flat", "other", {"--data", flat() + ",val_classes=0.25", "--seed", "1"});
  ASSERT_EQ(other.code, 0) << other.err;
  ASSERT_EQ(embed("flat", "mine.h5").code, 0);
  ASSERT_EQ(embed("flat", "theirs.h5", "other").code, 0);
  const Finished refused = eval({"--embeddings", in("mine.h5"), "--gallery", in("theirs.h5")});
  EXPECT_EQ(refused.code, 3);
  EXPECT_TRUE(holds(refused.err, in("theirs.h5") + ": embedded by another network"));
  // Pictures are not embedded first: these cannot even be read.
  for (const char* name : {"pair/a/1.jpg", "pair/b/1.jpg"}) folder_->write(name, "no picture");
  const Finished early = eval(
      {"--checkpoint", best(), "--data", "folder:" + in("pair"), "--gallery", in("theirs.h5")});
  EXPECT_EQ(early.code, 3);
  EXPECT_TRUE(holds(early.err, in("theirs.h5") + ": embedded by another network"));
  // last.h5 holds the same network as best.h5 and must be accepted.
  EXPECT_EQ(
      eval({"--checkpoint", in("run/last.h5"), "--data", flat(), "--gallery", in("mine.h5")}).code,
      0);
}

TEST_F(FolderRun, EvalSaysWhatTheNetworkWasTrainedOn) {
  const Finished all = embed("flat", "all.h5");
  ASSERT_EQ(all.code, 0) << all.err;
  EXPECT_TRUE(holds(all.out,
                    "the whole set (no splits): 32 images of 8 classes; the network "
                    "was trained on 6 of these classes"));
  EXPECT_TRUE(holds(all.err, "note: 6 of the 8 classes of " + flat()));
  EXPECT_EQ(result("embed.json")["classes_trained_on"], 6);
  EXPECT_TRUE(holds(all.err, in("all.h5") + ": 32 rows of the whole set (no splits)\n"));
  const Finished held = eval({"--checkpoint", best(), "--data", flat() + ",val_classes=0.25",
                              "--split", "Validation", "--json", in("held.json")});
  ASSERT_EQ(held.code, 0) << held.err;
  EXPECT_TRUE(holds(held.out, "split val: 8 images of 2 classes; the network was trained on none"));
  EXPECT_FALSE(holds(held.err, "trained on")) << held.err;
  EXPECT_EQ(result("held.json")["classes_trained_on"], 0);
  // A run that begins with these weights must count their classes as seen, too.
  folder_->classes("next/n", 4, 4);
  const Finished next =
      train("next", "next_run",
            {"--weights", best(), "--data", "folder:" + in("next") + ",val_classes=0.5"});
  ASSERT_EQ(next.code, 0) << next.err;
  ASSERT_EQ(embed("flat", "again.h5", "next_run").code, 0);
  EXPECT_EQ(result("embed.json")["classes_trained_on"], 6);
}

// Classes that were trained on as a split must be recognised when the folder is read without
// splits.
TEST_F(FolderRun, ClassesOfASplitAreKnownWithoutIt) {
  folder_->classes("parted/train/c", 4, 4);
  folder_->classes("parted/test/t", 2, 4);
  const std::string parted = "folder:" + in("parted");
  const Finished trained = train("parted", "parted_run");
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_TRUE(holds(trained.err, "8 images of 2 other classes"));
  const Finished all = eval({"--checkpoint", best("parted_run"), "--data", parted + ",splits=none",
                             "--json", in("parted.json")});
  ASSERT_EQ(all.code, 0) << all.err;
  EXPECT_TRUE(holds(all.out, "the network was trained on 4 of these classes (by name)"));
  EXPECT_EQ(result("parted.json")["classes_trained_on"], 4);
  // `train` must say the same about its --test-data.
  const Finished same = train("parted", "same_run", {"--test-data", parted + "/train"});
  ASSERT_EQ(same.code, 0) << same.err;
  EXPECT_TRUE(holds(same.err, "16 images of 4 classes; the best epoch"));
  EXPECT_TRUE(holds(same.err, "held out: these are the images that are trained on, so that"));
  const Finished some = train("parted", "some_run", {"--test-data", parted + ",splits=none"});
  ASSERT_EQ(some.code, 0) << some.err;
  EXPECT_TRUE(holds(some.err, "24 images of 6 classes"));
  EXPECT_TRUE(holds(some.err, "held out: 4 of these 6 classes are trained on, too (by name)"));
  // What the run trained on whose weights it starts from counts, too.
  folder_->classes("further/train/f", 4, 4);
  const Finished further =
      train("further", "further_run",
            {"--weights", best("parted_run"), "--test-data", parted + ",splits=none"});
  ASSERT_EQ(further.code, 0) << further.err;
  EXPECT_TRUE(holds(further.err,
                    "held out: 4 of these 6 classes are trained on, too (by name; here or before, "
                    "where --weights or --resume come from)"));
}

// Classes that were trained on as parts of a merged class, or with the split in front of their
// names, must be recognised by their own names.
TEST_F(FolderRun, MergedClassesAndThoseOfOneSetAreKnownByTheirOwnNames) {
  folder_->classes("sorted/train/c", 6, 4);
  folder_->classes("sorted/test/t", 2, 4);
  const std::string sorted = "folder:" + in("sorted");
  for (const auto& [run, of] : {std::pair{"merged_run", ",merge=3"},
                                std::pair{"whole_run", ",splits=none,categories=train"}}) {
    const Finished trained = train("sorted", run, {"--data", sorted + of, "--test-data", sorted});
    ASSERT_EQ(trained.code, 0) << trained.err;
    for (const auto& [split, known] : {std::pair{"train", 6}, std::pair{"test", 0}}) {
      const Finished seen = eval({"--checkpoint", best(run), "--data", sorted, "--split", split,
                                  "--json", in("sorted.json")});
      ASSERT_EQ(seen.code, 0) << seen.err;
      EXPECT_EQ(result("sorted.json")["classes_trained_on"], known) << run << seen.out;
    }
  }
  const Finished compared =
      train("sorted", "compared_run",
            {"--data", sorted + ",merge=3", "--test-data", sorted + ",splits=none"});
  ASSERT_EQ(compared.code, 0) << compared.err;
  EXPECT_TRUE(holds(compared.err, "held out: 6 of these 8 classes are trained on, too (by name)"));
}

// The epoch that is best on some classes looks too good on these, so eval must say when its classes
// chose the epoch, and if it has only some of them.
TEST_F(FolderRun, EvalSaysThatItsClassesChoseTheEpoch) {
  const std::string data = flat() + ",val_classes=0.25";
  ASSERT_EQ(train("flat", "two_epochs", {"--data", data, "--epochs", "2"}).code, 0);
  const auto evaluated = [&](const std::string& run, const std::string& spec,
                             const std::string& split) {
    Finished end = eval(
        {"--checkpoint", best(run), "--data", spec, "--split", split, "--json", in("chose.json")});
    EXPECT_EQ(end.code, 0) << end.err;
    return end;
  };
  const Finished chose = evaluated("two_epochs", data, "val");
  const std::string epoch = " the epoch of " + in("two_epochs/best.h5") + " was chosen as the best";
  EXPECT_TRUE(holds(chose.err, "note: " + data + ": on these 2 classes, by name," + epoch));
  EXPECT_TRUE(holds(chose.out, "none of these classes (by name); its epoch was chosen on these"));
  EXPECT_EQ(result("chose.json")["chose_the_epoch"], true);
  const std::string all = flat() + ",splits=none";
  EXPECT_TRUE(holds(evaluated("two_epochs", all, "test").err,
                    "note: " + all + ": on 2 of these 8 classes, by name," + epoch));
  EXPECT_TRUE(holds(result("chose.json")["notes"].dump(), "on 2 of these 8 classes"));
  EXPECT_EQ(result("chose.json")["chose_the_epoch"], true);
  // Not for other classes, nor for a run with a single epoch to choose from.
  for (const auto& [run, split] : {std::pair{"two_epochs", "train"}, std::pair{"run", "val"}}) {
    EXPECT_FALSE(holds(evaluated(run, data, split).err, "was chosen")) << run;
    EXPECT_FALSE(result("chose.json").contains("chose_the_epoch"));
  }
  // Queries and gallery are one set to a run, and two to eval.
  folder_->classes("shop/train/c", 4, 4);
  folder_->classes("shop/query/t", 2, 2);
  folder_->classes("shop/gallery/t", 2, 3);
  ASSERT_EQ(train("shop", "shop_run", {"--epochs", "2"}).code, 0);
  for (const char* part : {"query", "gallery"}) {
    EXPECT_TRUE(holds(evaluated("shop_run", "folder:" + in("shop"), part).err, "was chosen"));
    EXPECT_EQ(result("chose.json")["chose_the_epoch"], true) << part;
  }
}

TEST_F(FolderRun, SplitsInTheSpellingsOfPeople) {
  folder_->classes("capitals/Train/c", 4, 4);
  folder_->classes("capitals/Test/t", 2, 4);
  const Finished trained = train("capitals", "capitals_run");
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_TRUE(holds(trained.err, "split train: 16 images of 4 classes;"));
  EXPECT_TRUE(holds(trained.err, "held out: split test: 8 images of 2 other classes"));
  EXPECT_FALSE(holds(trained.err, "categories")) << trained.err;

  folder_->classes("yolo/train/c", 2, 2);
  folder_->classes("yolo/valid/v", 3, 2);
  const std::vector<std::string> words = {"--checkpoint", best(), "--data", "folder:" + in("yolo"),
                                          "--split"};
  const auto of_split = [&](const std::string& split) { return eval(joined(words, {split})); };
  EXPECT_TRUE(holds(of_split("val").out, "split val: 6 images of 3 classes"));
  EXPECT_EQ(of_split("test").code, 3);

  folder_->classes("store/train/c", 2, 2);
  folder_->classes("store/query/s", 3, 1);
  folder_->classes("store/gallery/s", 4, 2);
  const auto shop = [&](const std::string& split) {
    return eval({"--checkpoint", best(), "--data", "folder:" + in("store"), "--split", split,
                 "--save-embeddings", in("store_" + split + ".h5")});
  };
  EXPECT_TRUE(holds(shop("query").out, "split query: 3 images of 3 classes"));
  EXPECT_TRUE(holds(shop("gallery").out, "split gallery: 8 images of 4 classes"));
  EXPECT_TRUE(holds(shop("test").out, "split test: 11 images of 4 classes"));
  const Finished searched =
      eval({"--embeddings", in("store_query.h5"), "--gallery", in("store_gallery.h5")});
  EXPECT_TRUE(holds(searched.out, "3 of the 3 searched for among them"));
}

TEST_F(FolderRun, ADoubtfulLevelIsRefusedWithBothReadings) {
  folder_->classes("doubt/train/c", 3, 2);
  folder_->classes("doubt/test/t", 2, 2);
  folder_->classes("doubt/raw_originals/r", 1, 2);
  for (const std::string more : {"", ",val_classes=0.2"}) {
    const Finished refused =
        train("doubt", "doubt_run", {"--data", "folder:" + in("doubt") + more});
    EXPECT_EQ(refused.code, 3) << refused.err;
    EXPECT_TRUE(holds(refused.err,
                      "'test', 'train' would be a split, 'raw_originals' would be "
                      "none"));
  }
  const Finished evaluated = eval({"--checkpoint", best(), "--data", "folder:" + in("doubt")});
  EXPECT_EQ(evaluated.code, 3);
  const Finished meant =
      train("doubt", "meant", {"--data", "folder:" + in("doubt") + ",splits=none,val_classes=0.2"});
  EXPECT_EQ(meant.code, 0) << meant.err;
  EXPECT_TRUE(holds(meant.err, "classes in 3 categories"));
  // The same class in both splits must be refused: its pictures would be trained and tested on.
  folder_->classes("both/Train/c", 2, 2);
  folder_->classes("both/Test/c", 2, 2);
  const Finished both = train("both", "both_run");
  EXPECT_EQ(both.code, 3);
  EXPECT_TRUE(holds(both.err, "is also in "));
}

TEST_F(FolderRun, OtherFilesAreCountedAndOddJpegsAreRead) {
  folder_->classes("odd/c", 2, 2);
  folder_->write("odd/c0/phone.HEIC", "x");
  folder_->write("odd/c1/film.mp4", "x");
  folder_->write("odd/c1/other.heic", "x");
  folder_->write("odd/__MACOSX/._c0", "x");
  std::string jpeg = file_text(RK_TEST_GOLDEN "/images/files/q75_420.jpg");
  ASSERT_GT(jpeg.size(), 100U);
  jpeg.insert(jpeg.size() - 2, 9, '\0');
  folder_->write("odd/c0/webcam.jpg", jpeg);
  const Finished done = embed("odd", "odd.h5");
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_TRUE(holds(done.out, "5 images of 2 classes"));
  EXPECT_TRUE(holds(done.err, "images it reads: 2 .heic, 1 .mp4"));
  EXPECT_TRUE(holds(done.err, "webcam.jpg: an odd JPEG"));
}

TEST_F(FolderRun, PathsAsPeopleWriteThem) {
  const Finished bare = eval({"--checkpoint", best(), "--data", in("flat")});
  EXPECT_EQ(bare.code, 0) << bare.err;
  EXPECT_TRUE(holds(bare.out, flat() + ", the whole set"));
  const Finished home = run_to_end(
      {"/usr/bin/env", "HOME=" + folder_->path().string(), RK_BIN "/eval", "--checkpoint", best(),
       "--data", "folder:~/flat,val_classes=0.25", "--split", "val"},
      folder_->path().string());
  EXPECT_EQ(home.code, 0) << home.err;
  EXPECT_TRUE(holds(home.out, "8 images of 2 classes"));
}

TEST_F(FolderRun, CategoriesHaveTheirNames) {
  folder_->classes("furniture/lamps/l", 2, 3);
  folder_->classes("furniture/tables/t", 3, 3);
  const Finished done = eval({"--checkpoint", best(), "--data", "folder:" + in("furniture"),
                              "--per-class", "--json", in("furniture.json")});
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_TRUE(holds(done.out, "        6  lamps\n"));
  const nlohmann::json rows = result("furniture.json")["per_category"];
  ASSERT_EQ(rows.size(), 2U);
  for (const nlohmann::json& row : rows) {
    EXPECT_EQ(row["name"], row["category"] == 0 ? "lamps" : "tables");
    EXPECT_EQ(row["queries"], row["category"] == 0 ? 6 : 9);
  }
}

TEST_F(FolderRun, FlagsWithoutEffectAreNamed) {
  const Finished odd =
      train("flat", "odd_flags",
            {"--data", flat() + ",val_classes=0.25", "--drop-at", "100", "--optimizer", "adam",
             "--momentum", "0.5", "--beta1", "0.8", "--stride-in-1x1"});
  ASSERT_EQ(odd.code, 0) << odd.err;
  EXPECT_TRUE(holds(odd.err, "--drop-at: has no effect without --schedule milestones"));
  EXPECT_TRUE(holds(odd.err, "--momentum: has no effect without --optimizer sgd"));
  EXPECT_TRUE(holds(odd.err, "--stride-in-1x1: has no effect without --arch resnet50"));
  EXPECT_FALSE(holds(odd.err, "--beta1")) << odd.err;
  const Finished late = train("flat", "late_flags",
                              {"--data", flat() + ",val_classes=0.25", "--epochs", "1", "--warmup",
                               "1.5", "--schedule", "milestones", "--drop-at", "1,2"});
  ASSERT_EQ(late.code, 0) << late.err;
  EXPECT_TRUE(holds(late.err, "--warmup 1.5: longer than the run's 1 epoch: --lr is not reached"));
  EXPECT_TRUE(
      holds(late.err, "--drop-at 1,2: behind the run's last epoch, 1: the rate never drops"));
}

TEST_F(FolderRun, RowsOfOtherLengthsAreNotedByBothWhoRead) {
  EmbeddingSet set;
  set.dim = 2;
  set.embeddings = {1, 0, 0, 3, 0.6F, 0.8F, 0, 1};
  set.labels = {0, 0, 1, 1};
  write_embeddings(in("long.h5"), set);
  const std::vector<std::string> probe = {RK_BIN "/probe", "--loss", "smooth_ap", "--in",
                                          in("long.h5")};
  const Finished as_given = run_to_end(probe, folder_->path().string());
  EXPECT_TRUE(holds(as_given.err,
                    "rows have lengths from 1 to 3; the loss takes them for rows of length 1; "
                    "--normalize makes them so first"));
  EXPECT_FALSE(
      holds(run_to_end(joined(probe, {"--normalize"}), folder_->path().string()).err, "lengths"));
  EXPECT_TRUE(holds(eval({"--embeddings", in("long.h5")}).err, "rows have lengths from 1 to 3"));
}

// A run that was started with a relative path must find its pictures when it is resumed from
// another folder, and again after the pictures have moved.
TEST_F(FolderRun, ARunFindsItsPicturesFromAnyFolder) {
  folder_->classes("moving/c", 6, 4);
  const auto shell = [&](const std::string& words) {
    return run_to_end({"/bin/sh", "-c", words}, folder_->path().string());
  };
  const Finished begun = shell(
      "cd " + in("") +
      " && " RK_BIN
      "/train"
      " --data folder:moving,val_classes=0.5 --out moving_run --arch resnet20 --dim 16 "
      "--image-size 16 --resize 16 --batch 4 --per-class 2 --batches 1 --epochs 1 --threads 2");
  ASSERT_EQ(begun.code, 0) << begun.err;
  EXPECT_TRUE(holds(file_text(in("moving_run/settings.toml")),
                    "data = \"folder:" + in("moving") + ",val_classes=0.5\""));
  const std::string resume =
      "cd / && " RK_BIN "/train --out " + in("moving_run") + " --resume auto --threads 2 --epochs ";
  const Finished elsewhere = shell(resume + "2");
  EXPECT_EQ(elsewhere.code, 0) << elsewhere.err;
  fs::rename(in("moving"), in("moved"));
  const Finished lost = shell(resume + "3");
  EXPECT_EQ(lost.code, 3);
  EXPECT_TRUE(holds(lost.err, in("moving") + ": no such folder; it is the --data of " +
                                  in("moving_run/last.h5") + "; give --data SPEC where it lies"));
  const Finished found = shell(resume + "3 --data folder:" + in("moved") + ",val_classes=0.5");
  EXPECT_EQ(found.code, 0) << found.err;
}

// Behind a link, ".." is the folder above the one it leads to.
TEST_F(FolderRun, APathBehindALinkIsTheSystems) {
  folder_->classes("here/photos/c", 4, 4);
  folder_->classes("there/photos/c", 2, 4);
  folder_->classes("there/below/c", 2, 4);
  fs::create_directory_symlink("../there/below", in("here/link"));
  const Finished done = train("here/link/../photos", "behind_run", {"--test-data", "none"});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_TRUE(holds(done.err, "8 images of 2 classes"));
  const Finished plain = train("here/link/../../here/photos", "plain_run", {"--test-data", "none"});
  EXPECT_EQ(plain.code, 0) << plain.err;
  EXPECT_TRUE(holds(plain.err, "16 images of 4 classes"));
  EXPECT_TRUE(holds(train("here/none/../photos", "no_run", {"--test-data", "none"}).err,
                    in("here/none/../photos") + ": no such folder"));
  EXPECT_TRUE(holds(train("here/./photos/../photos", "tidy_run", {"--test-data", "none"}).err,
                    "data: folder:" + in("here/photos") + ","));
}

// What is not held out has a name, which a terminal would take for commands.
TEST_F(FolderRun, NamesOfFilesNeverReachATerminalAsTheyAre) {
  folder_->classes("odd/c", 3, 4);
  fs::create_directory(in("odd/\033]0;hacked\007x"));
  fs::create_directory(in("odd/two\nlines"));
  const Finished done = train("odd", "odd_run", {"--test-data", "none"});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_TRUE(holds(done.err, "\\x1b]0;hacked\\x07x"));
  EXPECT_TRUE(holds(done.err, "two\\nlines"));
  EXPECT_EQ(done.err.find('\033'), std::string::npos);
}

TEST_F(FolderRun, ChangedPicturesAreRefusedUnlessAllowed) {
  folder_->classes("changing/c", 6, 4);
  const auto go_on = [&](const std::string& out, const std::vector<std::string>& more) {
    const std::vector<std::string> words =
        joined({RK_BIN "/train", "--out", in(out), "--resume", "auto", "--threads", "2"}, more);
    return run_to_end(words, folder_->path().string());
  };
  const std::vector<std::string> data = {"--data", "folder:" + in("changing"), "--test-data",
                                         flat()};
  ASSERT_EQ(train("changing", "changing_run", joined(data, {"--memory", "1"})).code, 0);
  ASSERT_EQ(train("changing", "proxies_run", joined(data, {"--loss", "nsl"})).code, 0);
  const Finished turned =
      go_on("changing_run", {"--epochs", "2", "--data", "folder:" + in("changing") + ",exif=turn"});
  EXPECT_EQ(turned.code, 3);
  EXPECT_TRUE(holds(turned.err, " with exif=turn instead of ignore; restore the data"));
  folder_->picture("changing/c0/new.png", 4711);
  folder_->classes("changing/d", 1, 4);
  const Finished refused = go_on("changing_run", {"--epochs", "2"});
  EXPECT_EQ(refused.code, 3);
  EXPECT_TRUE(holds(refused.err, "was trained on 24 images "));
  EXPECT_TRUE(holds(refused.err, "--data is now 29 images "));
  EXPECT_TRUE(holds(refused.err,
                    "with 1 new class ('d0'); restore the data, or go on with them as "
                    "they are by --allow-changed-data"));
  fs::rename(in("changing/c5"), in("changing/e0"));
  EXPECT_TRUE(holds(go_on("changing_run", {"--epochs", "2"}).err,
                    "with 2 new classes ('d0', 'e0') and without 1 class ('c5'); restore"));
  fs::rename(in("changing/e0"), in("changing/c5"));
  const Finished allowed = go_on("changing_run", {"--epochs", "2", "--allow-changed-data"});
  EXPECT_EQ(allowed.code, 0) << allowed.err;
  EXPECT_TRUE(holds(allowed.err, "data: 24 images "));
  EXPECT_TRUE(holds(allowed.err, "memory: begins empty"));
  // From then on the changed data are the run's own.
  EXPECT_EQ(go_on("changing_run", {"--epochs", "3"}).code, 0);
  const Finished other = go_on("proxies_run", {"--epochs", "2", "--allow-changed-data"});
  EXPECT_EQ(other.code, 3);
  EXPECT_TRUE(holds(other.err, "has a proxy for each class of its data"));
  // Fewer classes, whose names are all known.
  for (const char* gone : {"changing/d0", "changing/c5"}) fs::remove_all(in(gone));
  const Finished fewer = go_on("proxies_run", {"--epochs", "2", "--allow-changed-data"});
  EXPECT_EQ(fewer.code, 3);
  EXPECT_TRUE(holds(fewer.err, "has a proxy for each class of its data"));
}

TEST_F(FolderRun, NothingToGoOnFromIsSaid) {
  const Finished begun =
      train("flat", "mistyped", {"--data", flat() + ",val_classes=0.25", "--resume", "auto"});
  EXPECT_EQ(begun.code, 0);
  EXPECT_TRUE(holds(begun.err, "note: " + in("mistyped") + ": nothing to go on from; a new run"));
  const Finished more =
      train("flat", "mistyped",
            {"--data", flat() + ",val_classes=0.25", "--resume", "auto", "--epochs", "2"});
  EXPECT_EQ(more.code, 0);
  EXPECT_FALSE(holds(more.err, "nothing to go on from")) << more.err;
}

// The first example of --help must work with few classes: the default batch is made to fit.
TEST_F(FolderRun, ABatchThatNobodyChoseFitsTheClasses) {
  const auto begin = [](const std::string& out, const std::vector<std::string>& more) {
    const std::vector<std::string> words =
        joined({RK_BIN "/train", "--data", flat() + ",val_classes=0.25", "--out", in(out),
                "--per-class", "2", "--batches", "1", "--epochs", "1", "--threads", "2"},
               kTinyNetwork);
    return run_to_end(with_flags(words, more), folder_->path().string());
  };
  const Finished fitted = begin("fitted", {});
  ASSERT_EQ(fitted.code, 0) << fitted.err;
  EXPECT_TRUE(
      holds(fitted.err, "note: --batch 12: 2 images of each of 6 classes of " + in("flat")));
  EXPECT_TRUE(holds(file_text(in("fitted/settings.toml")), "\nbatch = 12\n"));
  // The run can be resumed like any other.
  const Finished more = begin("fitted", {"--resume", "auto", "--epochs", "2"});
  EXPECT_EQ(more.code, 0) << more.err;
  EXPECT_FALSE(holds(more.err, "--batch 12")) << more.err;
  const Finished chosen = begin("chosen", {"--batch", "128"});
  EXPECT_EQ(chosen.code, 3);
  EXPECT_TRUE(holds(chosen.err, "needs 64 classes, there are 6; use --batch 12"));
}

// The square goes with the weights: to eval, to what convert says and writes, and to training on.
TEST_F(FolderRun, StretchedPicturesAreStretchedWhereverTheNetworkGoes) {
  for (std::uint64_t i = 0; i < 16; ++i) {
    const std::string name = fmt::format("c{}/{}.png", i / 4, i);
    folder_->picture("wide/" + name, i, 60, 18);
    const auto square = encode_png(resize(read_image(in("wide/" + name)), 20, 20));
    folder_->write("square/" + name, square);
  }
  const std::vector<std::string> held = {"--test-data", "folder:" + in("wide"), "--stretch",
                                         "--resize", "20"};
  const Finished done = train("flat", "stretch_run", held);
  ASSERT_EQ(done.code, 0) << done.err;
  const std::string network = in("stretch_run/last.h5");
  const auto embedded = [&](const std::string& data) {
    const Finished end = eval({"--checkpoint", network, "--data", "folder:" + in(data),
                               "--save-embeddings", in(data + ".h5")});
    EXPECT_EQ(end.code, 0) << end.err;
    return Hdf5Reader(in(data + ".h5")).read<float>("/embeddings");
  };
  EXPECT_EQ(embedded("wide"), embedded("square"));
  const Finished out = convert({"--from-run", in("stretch_run"), in("s.safetensors")});
  EXPECT_TRUE(holds(out.out, "stretched to 20 x 20")) << out.out << out.err;
  EXPECT_TRUE(holds(file_text(in("s.py")), "transforms.Resize((20, 20))"));
  const Finished on =
      train("flat", "from_stretched", {"--test-data", "none", "--weights", in("s.safetensors")});
  EXPECT_TRUE(holds(on.err, "stretch true"));
  EXPECT_TRUE(Checkpoint(in("from_stretched/last.h5")).model().stretch);
}

// As of people or bottles.
TEST_F(FolderRun, WhatTheCropLeavesOutIsSaid) {
  const auto notes = [&](int width, int height, const std::vector<std::string>& more) {
    const std::string set = fmt::format("of{}x{}", width, height);
    for (int i = 0; i < 8; ++i) {
      folder_->write(fmt::format("{}/c{}/{}.png", set, i / 4, i), encode_png(Image(width, height)));
    }
    const Finished end =
        run_to_end(joined({RK_BIN "/train", "--data", in(set), "--arch", "resnet20", "--image-size",
                           "32", "--resize", "40", "--batch", "8", "--epochs", "0", "--test-data",
                           "none", "--out", in("out-" + set), "--force"},
                          more),
                   folder_->path().string());
    EXPECT_EQ(end.code, 0) << end.err;
    return end.err;
  };
  const std::string part = "of the longer side of a typical picture, 32 x 32 in the middle";
  EXPECT_TRUE(holds(notes(20, 40, {}), "evaluation sees 40 % " + part));
  EXPECT_TRUE(holds(notes(50, 20, {}), "evaluation sees 32 % " + part));
  EXPECT_FALSE(holds(notes(20, 30, {}), part));
  EXPECT_FALSE(holds(notes(20, 41, {"--stretch"}), part));
}

TEST_F(FolderRun, PicturesThatLieAreCountedOrTurned) {
  folder_->classes("phone/c", 6, 4);
  for (const char* name : {"phone/c0/0.png", "phone/c5/2.png"}) {
    folder_->write(name, rotated_png(file_text(in(name))));
  }
  const std::string spec = "folder:" + in("phone");
  const std::string words = ": 2 of the pictures looked at are stored rotated or mirrored (EXIF";
  const Finished counted = embed("phone", "phone.h5");
  ASSERT_EQ(counted.code, 0) << counted.err;
  EXPECT_TRUE(holds(counted.err, "note: " + in("phone") + words));
  const auto notes = [&] {
    return nlohmann::json::parse(file_text(in("embed.json"))).at("notes").dump();
  };
  EXPECT_TRUE(holds(notes(), in("phone") + words));
  const Finished turned = eval({"--checkpoint", best(), "--data", spec + ",exif=turn",
                                "--save-embeddings", in("turned.h5"), "--json", in("embed.json")});
  ASSERT_EQ(turned.code, 0) << turned.err;
  EXPECT_FALSE(holds(notes(), words));
  EXPECT_TRUE(holds(notes(), "was trained on pictures with exif=ignore"));
  EXPECT_FALSE(holds(turned.err, "stored rotated")) << turned.err;
  EXPECT_TRUE(holds(turned.err, "note: the network was trained on pictures with exif=ignore, " +
                                    spec + ",exif=turn has exif=turn"));
  EXPECT_FALSE(holds(counted.err, "was trained on pictures with")) << counted.err;
  const EmbeddingSet a = read_embeddings(in("phone.h5")), b = read_embeddings(in("turned.h5"));
  for (std::int64_t i = 0; i < a.count(); ++i) {
    const auto row = [&](const EmbeddingSet& set) {
      return std::vector<float>(set.embeddings.begin() + i * set.dim,
                                set.embeddings.begin() + (i + 1) * set.dim);
    };
    EXPECT_EQ(row(a) == row(b), i != 0 && i != 5 * 4 + 2) << i;
  }
  const Finished trained = train("phone", "phone_run", {"--test-data", flat()});
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_TRUE(holds(trained.err, "note: " + in("phone") + words));
}

// eval must turn pictures by EXIF if the network was trained so, unless --data says otherwise.
TEST_F(FolderRun, EvalTurnsPicturesAsTheNetworkLearntThem) {
  folder_->classes("learnt/c", 6, 4);
  folder_->write("learnt/c0/0.png", rotated_png(file_text(in("learnt/c0/0.png"))));
  const std::string data = "folder:" + in("learnt");
  const Finished trained =
      train("learnt", "learnt_run", {"--data", data + ",exif=turn", "--test-data", flat()});
  ASSERT_EQ(trained.code, 0) << trained.err;
  const auto first_row = [&](const std::string& spec) {
    const Finished done = eval({"--checkpoint", best("learnt_run"), "--data", spec,
                                "--save-embeddings", in("learnt.h5"), "--force"});
    EXPECT_EQ(done.code, 0) << done.err;
    EXPECT_EQ(holds(done.err, "stored rotated"), holds(spec, "exif=ignore")) << done.err;
    const EmbeddingSet set = read_embeddings(in("learnt.h5"));
    EXPECT_EQ(set.exif, holds(spec, "exif=ignore") ? "ignore" : "turn");
    return std::vector<float>(set.embeddings.begin(), set.embeddings.begin() + set.dim);
  };
  const std::vector<float> unsaid = first_row(data);
  EXPECT_EQ(unsaid, first_row(data + ",exif=turn"));
  EXPECT_NE(unsaid, first_row(data + ",exif=ignore"));
  // learnt.h5 now is what was ignored; queries are turned.
  const Finished mixed =
      eval({"--checkpoint", best("learnt_run"), "--data", data, "--gallery", in("learnt.h5")});
  EXPECT_EQ(mixed.code, 0) << mixed.err;
  EXPECT_TRUE(holds(mixed.err, "learnt.h5: its pictures were embedded with exif=ignore, those of " +
                                   data + " with exif=turn"));
}

// If a network was trained on turned pictures, exported files must turn them or say so, and a run
// that begins with its weights but does not turn pictures must be told.
TEST_F(FolderRun, ThatPicturesWereTurnedGoesWithTheWeights) {
  best();
  folder_->classes("turned/c", 6, 4);
  const std::string data = "folder:" + in("turned");
  const Finished trained =
      train("turned", "turned_run", {"--data", data + ",exif=turn", "--test-data", flat()});
  ASSERT_EQ(trained.code, 0) << trained.err;
  for (const auto& [run_name, turns] : {std::pair{"turned_run", true}, std::pair{"run", false}}) {
    for (const char* name : {"e.safetensors", "e.onnx"}) {
      const Finished done = convert({"--force", "--from-run", in(run_name), in(name)});
      ASSERT_EQ(done.code, 0) << done.err;
      EXPECT_EQ(holds(done.out, "turned upright by EXIF"), turns) << done.out;
      EXPECT_EQ(holds(file_text(in(name)), "exif"), turns);
    }
    EXPECT_EQ(holds(file_text(in("e.py")), "return upright(image).convert("), turns);
  }
  ASSERT_EQ(convert({"--from-run", in("turned_run"), in("t.safetensors")}).code, 0);
  const std::string note =
      "note: the network was trained on pictures with exif=turn, " + data + " has exif=ignore";
  for (const auto& [weights, name] : {std::pair{"turned_run/best.h5", data},
                                      std::pair{"t.safetensors", in("turned")}}) {  // PATH alone
    const Finished again = train("turned", std::string("again_") + weights[1],
                                 {"--weights", in(weights), "--data", name, "--test-data", flat()});
    EXPECT_EQ(again.code, 0) << again.err;
    EXPECT_TRUE(holds(again.err, note));
  }
}

// There are no others to train on.
TEST_F(FolderRun, WhereNoPictureCanBeReadConvertingThemIsAdvised) {
  for (const char* name : {"webp/c0/0.png", "webp/c0/1.png", "webp/c1/0.png", "webp/c1/1.png"}) {
    folder_->write(name, "RIFF....WEBP");
  }
  const Finished refused = train("webp", "webp_run", {"--test-data", flat()});
  EXPECT_EQ(refused.code, 3);
  EXPECT_TRUE(holds(refused.err, "4 of 4 images cannot be read"));
  EXPECT_TRUE(holds(refused.err, "; convert them to JPEG or PNG)\n"));
}

// Others of its class would take the place of a picture, and there are none.
TEST_F(FolderRun, AClassThatCannotBeReadIsNamed) {
  folder_->classes("lost/c", 3, 2);
  for (const char* name : {"lost/c1/0.png", "lost/c1/1.png"}) folder_->write(name, "no picture");
  const Finished refused = train("lost", "lost_run", {"--test-data", "none"});
  EXPECT_EQ(refused.code, 3);
  EXPECT_TRUE(holds(refused.err,
                    "; none of class 'c1' can be: convert them to JPEG or PNG, or remove it)\n"));
}

TEST_F(FolderRun, AllPicturesThatCannotBeReadAreListed) {
  folder_->classes("spoilt/c", 6, 4);
  for (const char* name : {"spoilt/c0/1.png", "spoilt/c2/0.png", "spoilt/c4/3.png"}) {
    folder_->write(name, "no picture");
  }
  const Finished refused = train("spoilt", "spoilt_run", {"--test-data", flat()});
  EXPECT_EQ(refused.code, 3);
  EXPECT_TRUE(holds(refused.err, "3 of 24 images cannot be read, all listed in " +
                                     in("spoilt_run/bad_files.txt") + "; --max-bad 3 trains"));
  const std::string list = file_text(in("spoilt_run/bad_files.txt"));
  EXPECT_EQ(std::count(list.begin(), list.end(), '\n'), 3) << list;
  EXPECT_TRUE(holds(list, in("spoilt/c4/3.png") + ": not a JPEG"));
  // A refused start leaves no run behind: another may begin in the folder, also with its pictures
  // named by a relative path.
  const std::string here = fmt::format(
      "cd '{}' && exec '{}' --data folder:./spoilt,min_images=2 --test-data none --out spoilt_run "
      "--max-bad 0 --arch resnet20 --image-size 16",
      folder_->path().string(), RK_BIN "/train");
  const Finished again = run_to_end({"/bin/sh", "-c", here}, folder_->path().string());
  EXPECT_TRUE(holds(again.err, "3 of 24 images cannot be read"));
  const Finished spoilt =
      train("spoilt", "spoilt_run", {"--test-data", flat(), "--max-bad", "3", "--batches", "20"});
  EXPECT_EQ(spoilt.code, 0) << spoilt.err;
  const std::string met = file_text(in("spoilt_run/bad_files.txt"));
  EXPECT_GE(std::count(met.begin(), met.end(), '\n'), 1) << met;
  EXPECT_TRUE(holds(met, ".png: not a JPEG"));
  EXPECT_TRUE(holds(spoilt.out, ", run.json, bad_files.txt\n"));
  const Finished held_out =
      train("flat", "held_out_run", {"--test-data", "folder:" + in("spoilt") + ",min_images=2"});
  EXPECT_EQ(held_out.code, 3);
  EXPECT_TRUE(holds(held_out.err, ".png: not a JPEG"));
  EXPECT_TRUE(holds(held_out.err, "; --max-bad, if it is not 0, leaves such images out of the"));
  const Finished evaluated = embed("spoilt", "spoilt.h5");
  EXPECT_EQ(evaluated.code, 3);
  EXPECT_TRUE(holds(evaluated.err, in("spoilt/c0/1.png") + ": not a JPEG"));
  EXPECT_TRUE(holds(evaluated.err, "; --skip-bad leaves such images out, `probe --data folder:" +
                                       in("spoilt") + "` names all"));
}

TEST_F(FolderRun, ARunGoesNeitherAmongThePicturesNorOverForeignFiles) {
  folder_->classes("album/c", 6, 4);
  for (const char* out : {"album", "album/run", "album/c0"}) {
    const Finished refused = train("album", out, {"--test-data", flat()});
    EXPECT_EQ(refused.code, 2) << out << refused.err;
    EXPECT_TRUE(holds(refused.err, "is or lies in " + in("album") + ", the folder of the pict"));
  }
  EXPECT_FALSE(fs::exists(in("album/run")));
  folder_->write("mine/settings.toml", "of = \"another program\"\n");
  const Finished foreign = train("album", "mine", {"--test-data", flat()});
  EXPECT_EQ(foreign.code, 3);
  EXPECT_TRUE(holds(foreign.err, in("mine/settings.toml") + ": is no run's"));
  EXPECT_TRUE(holds(file_text(in("mine/settings.toml")), "another program"));
  // But a folder with a lock file is a run's, killed before its first checkpoint.
  folder_->write("mine/.lock", "1");
  EXPECT_EQ(train("album", "mine", {"--test-data", flat()}).code, 0);
}

// The default network takes long without a GPU, which must be said before the first step.
TEST_F(FolderRun, TheDefaultNetworkIsSaidToBeSlowWithoutAGpu) {
  const auto said = [&](const std::vector<std::string>& more) {
    const std::vector<std::string> words =
        joined({RK_BIN "/train", "--out", in("slow"), "--device", "cpu", "--batch", "65536"}, more);
    const Finished refused = run_to_end(words, folder_->path().string());
    EXPECT_TRUE(holds(refused.err, "a batch of 65536"));  // before any step
    return refused.err;
  };
  const std::string pictures = flat() + ",val_classes=0.25";
  EXPECT_TRUE(holds(said({"--data", pictures}),
                    "note: resnet50 on 224 x 224 pixels is slow without a GPU; --arch resnet18"));
  EXPECT_FALSE(holds(said({"--data", pictures, "--arch", "resnet50"}), "is slow"));
  EXPECT_FALSE(holds(said({"--data", "glyphs"}), "is slow"));
}

TEST_F(FolderRun, SamplersAndSplitsThatSayLittleAreNamed) {
  folder_->classes("pairs_of/train/c", 30, 2);
  folder_->classes("pairs_of/test/t", 2, 2);
  const auto random = [&](const std::string& out, const std::string& loss) {
    // Not tiny_run(): its --per-class belongs to another sampler.
    return run_to_end(with_flags({RK_BIN "/train", "--data", "folder:" + in("pairs_of"), "--out",
                                  in(out), "--batch", "4", "--batches", "3", "--epochs", "1",
                                  "--threads", "2", "--sampler", "random", "--loss", loss},
                                 kTinyNetwork),
                      folder_->path().string());
  };
  const Finished pairs = random("pairs", "smooth_ap");
  ASSERT_EQ(pairs.code, 0) << pairs.err;
  // One of the 59 other images is of an image's class, and three of them are in its batch:
  // 1 - (58/59)^3.
  EXPECT_TRUE(holds(pairs.err, "sampler random: about 5 % of a batch's images have another of"));
  EXPECT_TRUE(holds(pairs.err,
                    "split test: 4 images of 2 other classes; the best epoch is chosen "
                    "on these, which flatters its figures there"));
  std::size_t said = 0;
  for (std::size_t at = 0;
       (at = pairs.err.find("no image of the batch had", at)) != std::string::npos; ++at) {
    ++said;
  }
  EXPECT_LE(said, 1U) << pairs.err;
  EXPECT_FALSE(holds(random("proxies", "nsl").err, "sampler random: about"));
}

TEST_F(FolderRun, OneClassAloneIsNoted) {
  EmbeddingSet set;
  set.dim = 2;
  set.embeddings = {1, 0, 0, 1, 0.6F, 0.8F};
  set.labels = {5, 5, 5};
  write_embeddings(in("one.h5"), set);
  EXPECT_TRUE(holds(eval({"--embeddings", in("one.h5")}).err, "all of it is one class"));
  set.labels = {5, 5, 6};
  write_embeddings(in("two.h5"), set);
  EXPECT_FALSE(holds(eval({"--embeddings", in("two.h5")}).err, "one class"));
}

TEST_F(FolderRun, OneClassAloneIsSaidBeforeTraining) {
  folder_->classes("onecl/c", 1, 8);
  const Finished alone = train("onecl", "alone", {"--per-class", "4", "--test-data", "none"});
  EXPECT_EQ(alone.code, 0) << alone.err;
  EXPECT_TRUE(holds(alone.err, "onecl: all of it is one class, so that there is nothing to tell"));
  EXPECT_FALSE(holds(alone.err, "held out:"));
  const Finished by_batch = train("flat", "by_batch", {"--per-class", "4", "--test-data", "none"});
  EXPECT_EQ(by_batch.code, 0) << by_batch.err;
  EXPECT_TRUE(holds(by_batch.err, "--batch 4: every batch is of one class"));
  EXPECT_TRUE(holds(by_batch.err, "take 8 or more"));
  const Finished with_memory =
      train("flat", "with_memory", {"--per-class", "4", "--memory", "8", "--test-data", "none"});
  EXPECT_EQ(with_memory.code, 0) << with_memory.err;
  EXPECT_FALSE(holds(with_memory.err, "every batch is of one class"));
  const Finished held = train("flat", "beside", {"--test-data", "folder:" + in("onecl")});
  EXPECT_EQ(held.code, 0) << held.err;
  EXPECT_TRUE(holds(held.err, "held out: all of it is one class, so that whatever is found"));
  EXPECT_FALSE(holds(held.err, "flat: all of it is one class"));
  const Finished several = train("flat", "several", {"--test-data", flat()});
  EXPECT_EQ(several.code, 0) << several.err;
  EXPECT_FALSE(holds(several.err, "one class")) << several.err;
}

// The command is right and the data are not, whatever finds that out.
TEST_F(FolderRun, OneClassThatIsRefusedIsBadInput) {
  folder_->classes("single/c", 1, 8);
  const std::string data = "folder:" + in("single");
  const std::string single = "holds a single class, which nothing can be told from; give more ";
  const auto expect_refused = [&](const std::vector<std::string>& flags, const std::string& text) {
    const Finished end = train("single", "none", flags);
    EXPECT_EQ(end.code, 3) << end.err;
    EXPECT_TRUE(holds(end.err, text));
    EXPECT_FALSE(fs::exists(in("none/run.json")));
  };
  expect_refused({}, "error: " + data + ": " + single);
  expect_refused({"--test-data", "none", "--batch", "8", "--per-class", "4"},
                 "error: " + in("single") + ": " + single);
  expect_refused({"--data", data + ",val_classes=0.2"}, "1 class cannot be divided");
}

// A folder given instead of a file, or a file instead of a folder, must be named as that.
TEST_F(FolderRun, AFolderForAFileIsSaid) {
  best();
  folder_->picture("look.png", 3);
  folder_->write("bare/notes.txt", "mine");
  folder_->write("begun/last.h5", "the state of a run without an epoch");
  folder_->write("mk.py", "mine");
  const auto why = [&](const std::vector<std::string>& words) {
    const Finished end = run_to_end(words, folder_->path().string());
    EXPECT_EQ(end.code, 3) << end.err;
    EXPECT_EQ(std::count(end.err.begin(), end.err.end(), '\n'), 1) << end.err;
    return end.err;
  };
  const std::string folder = ": is a folder; give ";
  for (const auto& [name, what] :
       {std::pair{"run", folder + in("run/best.h5")}, std::pair{"run/", folder + in("run/best.h5")},
        std::pair{"begun", folder + in("begun/last.h5")},
        std::pair{"begun/best.h5",
                  ": is not there; " + in("begun/last.h5") + " is the newest state of its run"},
        std::pair{"bare", folder + "the path of a file"}}) {
    const std::string said = in(name) + what + "\n";
    EXPECT_TRUE(
        holds(why({RK_BIN "/eval", "--checkpoint", in(name), "--data", flat(), "-q"}), said));
    EXPECT_TRUE(holds(
        why({RK_BIN "/probe", "--image", in("look.png"), "--checkpoint", in(name), "-q"}), said));
    EXPECT_TRUE(holds(
        why({RK_BIN "/train", "--data", flat(), "--weights", in(name), "--out", in("new"), "-q"}),
        said));
  }
  EXPECT_FALSE(fs::exists(in("new")));
  EXPECT_TRUE(holds(why({RK_BIN "/train", "--data", flat(), "--out", in("mk.py"), "-q"}),
                    in("mk.py") + ": is a file; give a folder\n"));
  EXPECT_EQ(file_text(in("mk.py")), "mine");
}

// For `eval --json - | jq` standard output must hold nothing but JSON; text for people goes to
// standard error.
TEST_F(FolderRun, JsonGoesToStandardOutputAlone) {
  EmbeddingSet set;
  set.dim = 2;
  set.embeddings = {1, 0, 0, 1, 0.6F, 0.8F};
  set.labels = {5, 5, 6};
  write_embeddings(in("three.h5"), set);
  const Finished done = eval({"--embeddings", in("three.h5"), "--json", "-"});
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(json::parse(done.out)["metrics"]["num_queries"], 3);
  EXPECT_TRUE(holds(done.err, "R@1"));
  EXPECT_FALSE(fs::exists("-"));
  EXPECT_TRUE(holds(
      eval({"--embeddings", in("three.h5"), "--threads", std::to_string(usable_cores() + 1)}).err,
      fmt::format("wait for one another: slower than --threads {}\n", usable_cores())));
}

}  // namespace
}  // namespace rk
