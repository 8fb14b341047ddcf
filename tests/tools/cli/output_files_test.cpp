// Which files the programs' outputs may replace.
#include "tools/cli/output_files.h"

#include "tests/support/messages.h"
#include "tests/support/words.h"
#include "tests/tools/train/folder_run.h"

#include <fmt/ranges.h>

namespace rk {
namespace {

namespace fs = std::filesystem;

// No output may replace a file that is read, nor a file of another kind.
TEST_F(FolderRun, OutputsReplaceNoInputsAndNoOtherFiles) {
  ASSERT_EQ(embed("flat", "a.h5").code, 0);
  folder_->picture("pic.png", 3);
  fs::copy(in("a.h5"), in("b.h5"), fs::copy_options::overwrite_existing);
  fs::copy(best(), in("best.h5"), fs::copy_options::overwrite_existing);
  fs::create_symlink("a.h5", in("link.h5"));
  folder_->write("notes.txt", "mine");
  folder_->write("plans.txt", "# NVIDIA H100 80GB HBM3, cuDNN 91900\n");
  const std::string probe = RK_BIN "/probe", loss = "smooth_ap";
  struct Case {
    std::vector<std::string> words;
    std::string kept;
    int code;
  };
  const std::vector<Case> cases = {
      {{RK_BIN "/eval", "--checkpoint", in("best.h5"), "--data", flat(), "--save-embeddings",
        in("best.h5")},
       "best.h5",
       2},
      {{RK_BIN "/eval", "--checkpoint", best(), "--data", flat(), "--save-embeddings",
        in("best.h5")},
       "best.h5",
       3},
      {{RK_BIN "/eval", "--embeddings", in("a.h5"), "--json", in("b.h5")}, "b.h5", 3},
      {{RK_BIN "/eval", "--embeddings", in("a.h5"), "--json", in("link.h5")}, "a.h5", 3},
      {{RK_BIN "/eval", "--embeddings", in("a.h5"), "--json", in("link.h5"), "--force"}, "a.h5", 2},
      {{RK_BIN "/eval", "--embeddings", in("b.h5"), "--gallery", in("a.h5"), "--json", in("a.h5"),
        "--force"},
       "a.h5",
       2},
      {{RK_BIN "/eval", "--embeddings", in("a.h5"), "--json", in("notes.txt")}, "notes.txt", 3},
      {{probe, "--loss", loss, "--in", in("a.h5"), "--out", in("a.h5")}, "a.h5", 2},
      {{probe, "--loss", loss, "--in", in("a.h5"), "--out", in("b.h5")}, "b.h5", 3},
      {{probe, "--image", in("pic.png"), "--out", in("pic.png")}, "pic.png", 2},
      {{probe, "--image", in("pic.png"), "--out", in("t.h5"), "--show", in("pic.png")},
       "pic.png",
       2},
      {{probe, "--image", in("pic.png"), "--out", in("a.h5")}, "a.h5", 3},
      {{RK_BIN "/train", "--data", flat(), "--out", in("x"), "--json", in("a.h5")}, "a.h5", 3},
      {{RK_BIN "/bench", "step", "--tune", in("notes.txt")}, "notes.txt", 3},
      {{RK_BIN "/bench", "step", "--tune", in("t.json"), "--json", in("t.json")}, "notes.txt", 2},
      // --tune accepts existing plans and extends them, but needs a GPU.
      {{RK_BIN "/bench", "step", "--tune", in("plans.txt")}, "plans.txt", 2},
  };
  for (const Case& each : cases) {
    const std::string before = file_text(in(each.kept));
    const Finished end = run_to_end(each.words, folder_->path().string());
    EXPECT_EQ(end.code, each.code) << each.kept << ": " << end.err;
    EXPECT_TRUE(file_text(in(each.kept)) == before) << end.err;
  }
  EXPECT_EQ(eval({"--embeddings", in("a.h5"), "--json", in("notes.txt"), "--force"}).code, 0);
  EXPECT_EQ(result("notes.txt").count("metrics"), 1U);
  // Results replace results of their kind; a missing folder must be named before the work.
  EXPECT_EQ(eval({"--embeddings", in("a.h5"), "--json", in("notes.txt")}).code, 0);
  const Finished nowhere =
      eval({"--checkpoint", best(), "--data", flat(), "--save-embeddings", in("nowhere/x.h5")});
  EXPECT_EQ(nowhere.code, 3);
  EXPECT_TRUE(holds(nowhere.err, "there is no folder"));
  EXPECT_EQ(nowhere.out, "");
}

// None of the files is there yet, so that only their names can be compared.
TEST_F(FolderRun, TwoSpellingsOfOneOutputAreOne) {
  ASSERT_EQ(embed("flat", "a.h5").code, 0);
  fs::create_symlink("page.html", in("ahead"));
  const auto in_folder = [&](const std::string& line) {
    return run_to_end({"/bin/sh", "-c", "cd '" + folder_->path().string() + "' && " + line},
                      folder_->path().string());
  };
  const std::string eval = RK_BIN "/eval --embeddings a.h5 --threads 2 --report page.html --json ";
  for (const std::string& json : {std::string("./page.html"), in("page.html"),
                                  std::string("flat/../page.html"), std::string("ahead")}) {
    const Finished end = in_folder(eval + json);
    EXPECT_EQ(end.code, 2) << json << end.err;
    EXPECT_TRUE(holds(end.err, "is the file of "));
    EXPECT_FALSE(fs::exists(in("page.html")));
  }
  const std::string train = RK_BIN "/train --data glyphs --arch resnet20 --epochs 1 --out ";
  for (const auto& [out, json] : {std::pair<std::string, std::string>{"./n", "n/last.h5"},
                                  {"n", in("n/metrics.jsonl")},
                                  {in("n"), "n/../n/best.h5"}}) {
    const Finished end = in_folder(train + out + " --json " + json);
    EXPECT_EQ(end.code, 2) << end.err;
    EXPECT_TRUE(holds(end.err, "is a file of the run itself"));
    EXPECT_FALSE(fs::exists(in("n")));
  }
}

// The checkpoint names the pictures, and no flag.
TEST_F(FolderRun, AResumedRunsResultReplacesNoPicture) {
  const std::string run = fs::path(best()).parent_path().string();
  fs::copy(run, in("goes_on"));
  const std::string before = file_text(in("flat/c0/0.png"));
  const Finished end = run_to_end({RK_BIN "/train", "--out", in("goes_on"), "--resume", "auto",
                                   "--json", in("flat/c0/0.png"), "--force"},
                                  folder_->path().string());
  EXPECT_EQ(end.code, 3) << end.err;
  EXPECT_TRUE(file_text(in("flat/c0/0.png")) == before);
}

TEST_F(FolderRun, StandardOutputIsForJsonAlone) {
  const Finished embeddings =
      eval({"--checkpoint", best(), "--data", flat(), "--save-embeddings", "-"});
  EXPECT_EQ(embeddings.code, 2);
  EXPECT_TRUE(holds(embeddings.err,
                    "error: --save-embeddings -: only --json can go to standard output; give the "
                    "name of a file"));
  EXPECT_EQ(embeddings.out, "");
  EXPECT_FALSE(fs::exists(in("-")));
}

// A user's file with the ending of a result must not be replaced: Rankine did not write it.
TEST_F(FolderRun, OutputsReplaceNoPicturesAndNoJsonOfOthers) {
  ASSERT_EQ(embed("flat", "own.h5").code, 0);
  folder_->picture("seen.png", 5);
  std::string photo = file_text(in("seen.png"));
  photo.replace(photo.find("Rankine"), 7, "Krita 5");
  folder_->write("photo.png", photo);
  for (const std::string name : {"embeddings", "neighbours", "grad", "pixels", "weights"}) {
    write_others_hdf5("others_" + name + ".h5", "/" + name);
  }
  const std::string text = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  folder_->write("others.safetensors", std::string(1, static_cast<char>(text.size())) +
                                           std::string(7, 0) + text + "1234");
  const std::string package = R"({"name": "app", "version": "1.0.0"})";
  folder_->write("package.json", package);
  const std::string probe = RK_BIN "/probe";
  const std::vector<std::string> search = {RK_BIN "/eval",      "--checkpoint", best(),
                                           "--index",           in("own.h5"),   "--query",
                                           in("flat/c0/0.png"), "--json"};
  struct Case {
    std::vector<std::string> words;  // the output's name follows
    std::string others, own;
  };
  const std::vector<Case> cases = {
      {{probe, "--image", in("seen.png"), "--out"}, "photo.png", "out.png"},
      {{probe, "--image", in("seen.png"), "--show"}, "photo.png", "show.png"},
      {{probe, "--image", in("seen.png"), "--json"}, "package.json", "image.json"},
      {{probe, "--data", flat(), "--json"}, "package.json", "data.json"},
      {{probe, "--loss", "smooth_ap", "--in", in("own.h5"), "--json"}, "package.json", "loss.json"},
      {search, "package.json", "search.json"},
      {{RK_BIN "/eval", "--embeddings", in("own.h5"), "--json"}, "package.json", "eval.json"},
      {{RK_BIN "/eval", "--compare", in("run"), in("run"), "--data", flat(), "--json"},
       "package.json",
       "compare.json"},
      {{RK_BIN "/convert", best(), "--list", "--json"}, "package.json", "convert.json"},
      {{RK_BIN "/eval", "--embeddings", in("own.h5"), "--save-embeddings"},
       "others_embeddings.h5",
       "saved.h5"},
      {{RK_BIN "/eval", "--embeddings", in("own.h5"), "--save-neighbours"},
       "others_neighbours.h5",
       "neighbours.h5"},
      {{probe, "--loss", "smooth_ap", "--in", in("own.h5"), "--out"},
       "others_grad.h5",
       "gradient.h5"},
      {{probe, "--image", in("seen.png"), "--out"}, "others_pixels.h5", "pixels.h5"},
      {{RK_BIN "/convert", best()}, "others_weights.h5", "weights.h5"},
      {{RK_BIN "/convert", best()}, "others.safetensors", "weights.safetensors"},
      {{RK_BIN "/bench", "eval", "--n", "64", "--dim", "8", "--classes", "8", "--repeats", "1",
        "--json"},
       "package.json",
       "bench.json"},
  };
  for (const Case& each : cases) {
    const Finished refused = run_to_end(joined(each.words, {in(each.others)}), folder_->path());
    EXPECT_EQ(refused.code, 3) << each.own << ": " << refused.err;
    EXPECT_TRUE(holds(refused.err, each.others.ends_with(".json")
                                       ? "JSON that no command of Rankine wrote as its result, and "
                                       : "that Rankine did not write, and "));
    for (int time = 0; time < 2; ++time) {  // the second time over its own file
      const Finished own = run_to_end(joined(each.words, {in(each.own)}), folder_->path());
      EXPECT_EQ(own.code, 0) << each.own << ": " << own.err;
    }
  }
  EXPECT_TRUE(file_text(in("photo.png")) == photo);
  EXPECT_EQ(file_text(in("package.json")), package);
  // Earlier versions did not sign files: embeddings are recognised by their /network.
  write_others_hdf5("unsigned.h5", "/embeddings", "/network");
  EXPECT_EQ(eval({"--embeddings", in("own.h5"), "--save-embeddings", in("unsigned.h5")}).code, 0);
  const Finished forced = run_to_end({probe, "--image", in("seen.png"), "--show", in("photo.png"),
                                      "--json", in("package.json"), "--force"},
                                     folder_->path().string());
  EXPECT_EQ(forced.code, 0) << forced.err;
  EXPECT_FALSE(file_text(in("photo.png")) == photo);
  EXPECT_EQ(result("package.json")["program"], "Rankine");
  // Nor may a command's result replace a run's own record.
  const std::string record = file_text(in("run/run.json"));
  EXPECT_EQ(eval({"--embeddings", in("own.h5"), "--json", in("run/run.json")}).code, 3);
  EXPECT_EQ(file_text(in("run/run.json")), record);
}

// --force replaces results, but nothing in a folder whose pictures are read.
TEST_F(FolderRun, NothingReplacesWhatLiesInAFolderThatIsRead) {
  folder_->classes("mine/c", 8, 4);
  ASSERT_EQ(embed("flat", "own.h5").code, 0);
  const std::string photo = in("mine/c0/0.png"), before = file_text(photo);
  const std::vector<std::vector<std::string>> programs = {
      {RK_BIN "/train", "--data", "folder:" + in("mine"), "--out", in("new"), "--batches", "1",
       "--epochs", "1", "--batch", "4", "--per-class", "2"},
      {RK_BIN "/train", "--data", flat(), "--test-data", "folder:" + in("mine"), "--out",
       in("new")},
      {RK_BIN "/probe", "--data", in("mine")},
      {RK_BIN "/bench", "loader", "--data", "folder:" + in("mine"), "--split", "train", "--images",
       "4", "--repeats", "1", "--batch", "2"},
      {RK_BIN "/eval", "--checkpoint", best(), "--data", "folder:" + in("mine")},
      {RK_BIN "/eval", "--checkpoint", best(), "--index", in("own.h5"), "--query", in("mine")}};
  fs::create_directory_symlink(in("mine"), in("link"));
  for (const std::vector<std::string>& words : programs) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(words, " ")));
    const std::vector<std::string> all = joined(words, {"--threads", "2", "--force"});
    for (const std::string& name : {photo, in("link/c0/../c0/0.png")}) {
      const Finished refused = run_to_end(with_flags(all, {"--json", name}), folder_->path());
      EXPECT_EQ(refused.code, 3) << refused.err;
      EXPECT_TRUE(holds(refused.err, "0.png: is a PNG, and --json would put"));
      EXPECT_FALSE(holds(refused.err, "or --force")) << refused.err;
    }
  }
  EXPECT_TRUE(file_text(photo) == before);
  EXPECT_FALSE(fs::exists(in("new")));
  // A result in such a folder may be replaced by the next one.
  for (int time = 0; time < 2; ++time) {
    const Finished done =
        run_to_end({RK_BIN "/probe", "--data", in("mine"), "--json", in("mine/found.json")},
                   folder_->path().string());
    EXPECT_EQ(done.code, 0) << done.err;
  }
}

}  // namespace
}  // namespace rk
