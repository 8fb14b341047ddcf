// Every flag of eval, probe and bench must have its documented effect, seen from outside (those of
// train: train_settings_test.cpp).
#include "engine/base/sanitizers.h"
#include "retrieval/files/embeddings_file.h"
#include "tests/retrieval/npy_bytes.h"
#include "tests/support/words.h"
#include "tests/tools/train/train_program.h"
#include "weights/hdf5/file.h"

#include <cerrno>
#include <functional>
#include <regex>
#include <set>

namespace rk {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// What a program printed, and its JSON (null if it wrote none).
struct Said {
  Finished end;
  json result;
};

// Checks a flag's effect against a run of the same command line without it.
using Shows = std::function<void(const Said& with, const Said& without)>;

struct Flag {
  std::vector<std::string> words;  // the flag and its value, and what it needs beside them
  Shows shows;
};

Shows holds_value(const std::string& pointer, const json& value) {
  return [=](const Said& with, const Said& without) {
    ASSERT_EQ(with.end.code, 0) << with.end.err;
    const json::json_pointer at(pointer);
    ASSERT_TRUE(with.result.contains(at)) << pointer << with.result.dump(1);
    EXPECT_EQ(with.result[at], value);
    EXPECT_TRUE(!without.result.contains(at) || without.result[at] != value);
  };
}

Shows changes_value(const std::string& pointer) {
  return [=](const Said& with, const Said& without) {
    ASSERT_EQ(with.end.code, 0) << with.end.err;
    const json::json_pointer at(pointer);
    EXPECT_NE(with.result[at], without.result[at]);
  };
}

Shows ends_with(int code, const std::string& words) {
  return [=](const Said& with, const Said& without) {
    EXPECT_EQ(with.end.code, code) << with.end.err;
    EXPECT_TRUE(holds(with.end.err, words));
    EXPECT_EQ(without.end.code, 0) << without.end.err;
  };
}

class ProgramFlags : public TrainProgram {
 protected:
  void SetUp() override {
    set_.dim = 4;
    CounterRandom random(3, 0, 0);
    for (int row = 0; row < 24; ++row) {
      float square = 0;
      for (int d = 0; d < 4; ++d) {
        set_.embeddings.push_back(static_cast<float>(random.normal()));
        square += set_.embeddings.back() * set_.embeddings.back();
      }
      for (int d = 0; d < 4; ++d) {
        set_.embeddings[set_.embeddings.size() - 1 - static_cast<std::size_t>(d)] /=
            std::sqrt(square);
      }
      set_.labels.push_back(row / 4);
    }
    write_embeddings(in("e.h5"), set_);
  }
  Said say(const Words& base, const Words& flag) const {
    Words words = base;
    fs::remove(in("said.json"));
    for (std::size_t i = 0; i < flag.size(); ++i) {  // a flag replaces the base's value
      const auto same = std::find(words.begin(), words.end(), flag[i]);
      if (flag[i].starts_with('-') && same != words.end()) words.erase(same, same + 2);
      words.push_back(flag[i]);
    }
    Said said{run(joined(words, {"--json", in("said.json")})), nullptr};
    if (fs::exists(in("said.json"))) said.result = json::parse(file_text(in("said.json")));
    return said;
  }
  // Checks each of `flags` added to `base`, and that no flag listed by the command `help` is
  // missing.
  void check(const Words& base, const Words& help, const std::vector<Flag>& flags,
             std::set<std::string> shown_elsewhere = {}) const {
    const Said without = say(base, {});
    ASSERT_EQ(without.end.code, 0) << without.end.err;
    for (const std::string& word : base) shown_elsewhere.insert(word);
    for (const Flag& flag : flags) {
      SCOPED_TRACE(fmt::format("{}", fmt::join(flag.words, " ")));
      flag.shows(say(base, flag.words), without);
      for (const std::string& word : flag.words) shown_elsewhere.insert(word);
    }
    const Finished text = run(help);
    const std::regex name(R"((^|\n)  (-\w,)?(--[a-z0-9-]+))");
    for (std::sregex_iterator at(text.out.begin(), text.out.end(), name), end; at != end; ++at) {
      EXPECT_TRUE(shown_elsewhere.contains((*at)[3])) << (*at)[3] << " has no case";
    }
  }
  // The flags that all programs have, for programs whose JSON holds threads and device.
  std::vector<Flag> common() const {
    return {{{"--threads", "3"}, holds_value("/threads", 3)},
            {{"--device", "cuda:99"},
             [](const Said& with, const Said&) { EXPECT_EQ(with.end.code, 5) << with.end.err; }},
            {{"--device", "gpu"}, ends_with(2, "--device")},
            {{"--quiet"}, [](const Said& with, const Said& without) {
               EXPECT_EQ(with.end.code, 0);
               EXPECT_LE(with.end.err.size(), without.end.err.size());
               EXPECT_EQ(with.end.err, "");
             }}};
  }
  static std::vector<Flag> beside(std::vector<Flag> a, const std::vector<Flag>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }
  // Flags that are tested elsewhere: in OutputsReplaceNoInputsAndNoOtherFiles and all over here.
  static std::set<std::string> everywhere() { return {"--help", "--version", "--json", "--force"}; }

  EmbeddingSet set_;
};

// The flags of eval that add metrics.
std::vector<Flag> statistics_flags() {
  const auto adds = [](const std::string& pointer, std::size_t entries) {
    return [=](const Said& with, const Said& without) {
      ASSERT_EQ(with.end.code, 0) << with.end.err;
      const json::json_pointer at(pointer);
      ASSERT_TRUE(with.result.contains(at)) << with.result.dump(1);
      EXPECT_EQ(with.result[at].size(), entries);
      EXPECT_FALSE(without.result.contains(at));
    };
  };
  return {
      {{"--confidence", "0.9"}, holds_value("/intervals/confidence", 0.9)},
      {{"--confidence", "0.9", "--resample", "queries"}, holds_value("/intervals/over", "queries")},
      {{"--resample", "queries"},
       ends_with(0, "--resample: has no effect without --confidence, --report or --compare")},
      {{"--per-class"}, adds("/per_class", 6)},
      {{"--curves"}, adds("/pairs/histogram/positive", 200)},
      {{"--nmi"}, holds_value("/metrics/nmi_clusters", 6)},
      {{"--protocol", "cub"}, holds_value("/protocol_name", "cub")},
      {{"--protocol", "inshop"}, ends_with(2, "give it with --gallery")},
      {{"--protocol", "vehicleid-official"}, holds_value("/metrics/num_gallery", 6)},
      {{"--protocol", "vehicleid-official", "--nmi"}, ends_with(2, "leave --confidence")}};
}

TEST_F(ProgramFlags, OfEvalOnEmbeddings) {
  EmbeddingSet gallery = set_;
  gallery.labels.pop_back();
  gallery.embeddings.resize(gallery.embeddings.size() - 4);
  write_embeddings(in("g.h5"), gallery);
  EmbeddingSet longer = set_;
  for (float& value : longer.embeddings) value *= 3;
  write_embeddings(in("long.h5"), longer);
  folder_.write("all_different.csv", [] {
    std::string text;
    for (int row = 0; row < 24; ++row) text += fmt::format("{}\n", row);
    return text;
  }());
  std::string ones;
  for (int row = 0; row < 23; ++row) ones += "1\n";
  folder_.write("ones.csv", ones);
  folder_.write("cameras.csv", ones + "2\n");
  const std::vector<Flag> flags = beside(
      beside(common(), statistics_flags()),
      {{{"--gallery", in("g.h5")}, holds_value("/metrics/num_gallery", 23)},
       {{"--cameras", in("cameras.csv")},
        holds_value("/cameras", in("cameras.csv") + ", whole numbers")},
       {{"--gallery", in("g.h5"), "--cameras", in("cameras.csv"), "--gallery-cameras",
         in("ones.csv")},
        holds_value("/protocol",
                    "against the gallery, same label and camera removed; inner product as given; "
                    "ties count against the query")},
       {{"--labels", in("all_different.csv")}, holds_value("/classes", 24)},
       {{"--gallery", in("g.h5"), "--gallery-labels", in("ones.csv")},
        holds_value("/gallery_classes", 1)},
       {{"--embeddings", in("long.h5"), "--normalize"},
        [&](const Said& with, const Said& without) {
          EXPECT_NEAR(with.result["metrics"]["pos_mean"].get<double>(),
                      without.result["metrics"]["pos_mean"].get<double>(), 1e-6);
          EXPECT_FALSE(holds(with.end.err, "have lengths"));
        }},
       {{"--embeddings", in("long.h5")}, changes_value("/metrics/pos_mean")},
       {{"--save-embeddings", in("copy.h5")},
        [&](const Said& with, const Said&) {
          EXPECT_EQ(with.end.code, 0) << with.end.err;
          EXPECT_EQ(read_embeddings(in("copy.h5")).embeddings, set_.embeddings);
        }},
       {{"--save-neighbours", in("n.h5"), "--topk", "5"},
        [&](const Said& with, const Said&) {
          EXPECT_EQ(with.end.code, 0) << with.end.err;
          EXPECT_EQ(Hdf5Reader(in("n.h5")).info("/neighbours").dims,
                    (std::vector<std::int64_t>{24, 5}));
          EXPECT_EQ(Hdf5Reader(in("n.h5")).info("/scores").dims,
                    (std::vector<std::int64_t>{24, 5}));
        }},
       {{"--recall-at", "3,7"},
        [](const Said& with, const Said& without) {
          EXPECT_TRUE(with.result["metrics"].contains("recall_at_3"));
          EXPECT_TRUE(with.result["metrics"].contains("recall_at_7"));
          EXPECT_FALSE(with.result["metrics"].contains("recall_at_10"));
          EXPECT_FALSE(without.result["metrics"].contains("recall_at_7"));
        }},
       {{"--confidence", "0.9", "--seed", "5"},
        [&](const Said& with, const Said&) {
          const json& interval = with.result["intervals"]["map"];
          EXPECT_LT(interval[0], with.result["metrics"]["map"]);
          EXPECT_GT(interval[1], with.result["metrics"]["map"]);
          const auto intervals = [&](const Words& seed) {
            return say({RK_BIN "/eval", "--embeddings", in("e.h5"), "--confidence", "0.9"}, seed)
                .result["intervals"];
          };
          EXPECT_EQ(intervals({"--seed", "5"}), with.result["intervals"]);
          EXPECT_NE(intervals({}), with.result["intervals"]);
        }},
       {{"--per-query"},
        [](const Said& with, const Said& without) {
          EXPECT_EQ(with.result["metrics"]["per_query"]["ap"].size(), 24U);
          EXPECT_FALSE(without.result["metrics"].contains("per_query"));
        }},
       {{"--report", in("report.html")},
        [&](const Said& with, const Said&) {
          EXPECT_EQ(with.end.code, 0) << with.end.err;
          EXPECT_TRUE(file_text(in("report.html")).starts_with("<!DOCTYPE html>"));
        }},
       {{"--compare", "a", "b"}, ends_with(2, "leave --checkpoint and --embeddings out")},
       {{"--verbose"}, [](const Said& with, const Said& without) {
          EXPECT_TRUE(holds(with.end.out, "GFLOP in tiles"));
          EXPECT_FALSE(holds(without.end.out, "GFLOP"));
        }}});
  std::set<std::string> other = everywhere();
  // Flags of evaluating images and of searching have their own cases.
  other.insert({"--checkpoint", "--data", "--split", "--gallery-split", "--batch", "--workers",
                "--skip-bad", "--arch", "--precision", "--index", "--query"});
  check({RK_BIN "/eval", "--embeddings", in("e.h5")}, {RK_BIN "/eval", "--help"}, flags, other);
}

TEST_F(ProgramFlags, OfEvalOnImages) {
  ASSERT_EQ(run(on_pictures("run", {"--epochs", "1"}, 1)).code, 0);
  folder_.classes("few/c", 3, 4);
  folder_.classes("bad/c", 3, 4);
  folder_.write("bad/c0/broken.png", "\x89PNG\r\n\x1a\n");
  const Words base = {RK_BIN "/eval", "--checkpoint", in("run/last.h5"), "--data",
                      "folder:" + in("sets")};
  folder_.classes("sets/train/c", 3, 5);
  folder_.classes("sets/test/t", 2, 3);
  const std::vector<Flag> flags = {
      {{"--data", "folder:" + in("few")}, holds_value("/metrics/num_queries", 12)},
      {{"--split", "train"}, holds_value("/metrics/num_queries", 15)},
      {{"--save-embeddings", in("saved.h5")},
       [&](const Said& with, const Said&) {
         EXPECT_EQ(with.end.code, 0) << with.end.err;
         EXPECT_EQ(read_embeddings(in("saved.h5")).count(), 6);
       }},
      // The size of a batch shows only in the memory it takes: pictures of 16 pixels need some
      // 0.1 MiB each in the network.
      {{"--batch", "16"},
       [&](const Said&, const Said&) {
         Words words = base;
         const auto limited = [&](const char* batch) {
           const Words all = joined(words, {"--split", "train", "--batch", batch});
           return run(limited_to(2930, all)).code;
         };
         if (RK_SANITIZED) return;  // sanitizers reserve more addresses than any limit
         EXPECT_EQ(limited("16"), 0);
         EXPECT_EQ(limited("65536"), 0) << "not more at a time than there are";
         words.at(4) = "glyphs:classes=70,images=1000,size=16";  // drawn on demand
         EXPECT_EQ(limited("65536"), 5);
       }},
      {{"--workers", "5"},
       [&](const Said& with, const Said&) {
         EXPECT_EQ(with.end.code, 0);
         const Finished few = run(with_faults(joined(base, {"--workers", "5", "--threads", "1"}),
                                              fmt::format("pthread_create,3,0,{},", EAGAIN)));
         EXPECT_TRUE(holds(few.err, "of 5 threads could be started"));
       }},
      {{"--skip-bad", "--data", "folder:" + in("bad")}, holds_value("/skipped_images", 1)},
      {{"--precision", "fp16", "--device", "cpu"},
       ends_with(2, "--precision fp16: needs a GPU, the CPU computes in fp32")},
      {{"--arch", "resnet50"}, ends_with(2, "holds a resnet20; leave --arch out")},
      {{"--gallery-split", "train"}, holds_value("/gallery_split", "train")},
      {{"--data", "folder:" + in("bad")}, ends_with(3, "broken.png")}};
  std::set<std::string> other = everywhere();
  other.insert({"--report",          "--compare",   "--embeddings",     "--labels",
                "--cameras",         "--gallery",   "--gallery-labels", "--gallery-cameras",
                "--normalize",       "--recall-at", "--per-query",      "--topk",
                "--save-neighbours", "--index",     "--query",          "--device",
                "--threads",         "--seed",      "--quiet",          "--verbose"});
  for (const Flag& flag : statistics_flags()) other.insert(flag.words.begin(), flag.words.end());
  check(base, {RK_BIN "/eval", "--help"}, flags, other);
}

TEST_F(ProgramFlags, OfEvalOnAnIndex) {
  ASSERT_EQ(run(on_pictures("run", {"--epochs", "1"}, 1)).code, 0);
  folder_.classes("sets/c", 3, 4);
  const auto index = [&](const std::string& name, const std::string& folder) {
    return run({RK_BIN "/eval", "--checkpoint", in("run/last.h5"), "--data", "folder:" + in(folder),
                "--save-embeddings", in(name), "-q"});
  };
  ASSERT_EQ(index("index.h5", "sets").code, 0);
  folder_.classes("few/c", 2, 2);
  ASSERT_EQ(index("few.h5", "few").code, 0);
  const std::string one = in("sets/c1/2.png");
  const Words base = {
      RK_BIN "/eval", "--checkpoint", in("run/last.h5"), "--index", in("index.h5"), "--query", one};
  const std::vector<Flag> flags = {{{"--index", in("few.h5")},
                                    [](const Said& with, const Said& without) {
                                      EXPECT_EQ(with.result["queries"][0]["results"].size(), 4U);
                                      EXPECT_EQ(without.result["queries"][0]["results"].size(),
                                                10U);
                                    }},
                                   {{"--query", in("sets/c2")},
                                    [](const Said& with, const Said& without) {
                                      EXPECT_EQ(with.result["queries"].size(), 4U);
                                      EXPECT_EQ(without.result["queries"].size(), 1U);
                                    }},
                                   {{"--topk", "3"},
                                    [](const Said& with, const Said&) {
                                      EXPECT_EQ(with.result["queries"][0]["results"].size(), 3U);
                                    }},
                                   {{"--report", in("found.html")}, [&](const Said&, const Said&) {
                                      EXPECT_TRUE(holds(file_text(in("found.html")), "Search in "));
                                    }}};
  std::set<std::string> other = everywhere();
  const Finished help = run({RK_BIN "/eval", "--help"});
  const std::regex name(R"((--[a-z0-9-]+))");
  // The flags of measuring have their cases above.
  for (std::sregex_iterator at(help.out.begin(), help.out.end(), name), end; at != end; ++at) {
    other.insert((*at)[1]);
  }
  check(base, {RK_BIN "/eval", "--help"}, flags, other);
}

TEST_F(ProgramFlags, OfProbeOnALoss) {
  EmbeddingSet longer = set_;
  for (float& value : longer.embeddings) value *= 2;
  write_embeddings(in("long.h5"), longer);
  std::vector<std::int64_t> labels(24);
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int64_t>(i / 12);
  folder_.write("halves.npy", npy_labels(labels));
  const std::vector<Flag> flags = beside(
      common(), {{{"--labels", in("halves.npy")}, changes_value("/loss")},
                 {{"--loss", "smooth_ap:tau=0.1"},
                  holds_value("/loss_name", "smooth_ap:tau=0.1,compat=paper")},
                 {{"--loss", "smooth_ap:tau=0.1"}, changes_value("/loss")},
                 {{"--in", in("long.h5"), "--normalize"},
                  [&](const Said& with, const Said& without) {
                    EXPECT_NEAR(with.result["loss"].get<double>(),
                                without.result["loss"].get<double>(), 1e-5);
                    // Of rows twice as long the gradient is half as long.
                    const Said unit = say({RK_BIN "/probe", "--loss", "fastap", "--in", in("e.h5")},
                                          {"--normalize"});
                    const double norm = unit.result["grad_norm"].get<double>();
                    EXPECT_GT(norm, 0);
                    EXPECT_NEAR(2 * with.result["grad_norm"].get<double>(), norm, 1e-5 * norm);
                  }},
                 {{"--in", in("long.h5")}, changes_value("/grad_norm")},
                 {{"--out", in("grad.h5")},
                  [&](const Said& with, const Said&) {
                    EXPECT_EQ(with.end.code, 0) << with.end.err;
                    EXPECT_EQ(Hdf5Reader(in("grad.h5")).info("/grad").dims,
                              (std::vector<std::int64_t>{24, 4}));
                  }},
                 {{"--check"}, [&](const Said& with, const Said& without) {
                    EXPECT_EQ(with.result["check"]["directions"], 16);
                    EXPECT_FALSE(without.result.contains("check"));
                    const Said other =
                        say({RK_BIN "/probe", "--loss", "smooth_ap:tau=0.1", "--in", in("e.h5")},
                            {"--check", "--seed", "5"});
                    const Said same =
                        say({RK_BIN "/probe", "--loss", "smooth_ap:tau=0.1", "--in", in("e.h5")},
                            {"--check"});
                    EXPECT_NE(other.result["check"]["worst"], same.result["check"]["worst"]);
                  }}});
  std::set<std::string> other = everywhere();
  other.insert({"--verbose", "--seed"});  // without effect here; see --check
  check({RK_BIN "/probe", "--loss", "fastap", "--in", in("e.h5")}, {RK_BIN "/probe", "--help"},
        flags, other);
}

TEST_F(ProgramFlags, OfProbeOnAnImage) {
  folder_.picture("p.png", 5, 60, 48);
  const Words base = {RK_BIN "/probe", "--image", in("p.png"), "--out", in("t.h5")};
  const auto tensor = [&] { return Hdf5Reader(in("t.h5")).read<float>("/tensor"); };
  ASSERT_EQ(run(base).code, 0);
  const std::vector<float> plain = tensor();
  const auto maps = [&](const std::function<float(float)>& f) {
    return [plain, tensor, f](const Said& with, const Said&) {
      ASSERT_EQ(with.end.code, 0) << with.end.err;
      const std::vector<float> now = tensor();
      ASSERT_EQ(now.size(), plain.size());
      for (std::size_t i = 0; i < 100; ++i) ASSERT_NEAR(now[i], f(plain[i]), 1e-4);
    };
  };
  folder_.picture("q.png", 6, 40, 20);
  const std::vector<Flag> flags = {
      {{"--image", in("q.png")}, holds_value("/width", 40)},
      {{"--resize", "24", "--image-size", "16"}, holds_value("/resized_width", 30)},
      {{"--resize", "24", "--stretch"}, holds_value("/resized_width", 24)},
      {{"--image-size", "16"}, holds_value("/tensor_shape", {3, 16, 16})},
      // maps() compares the first hundred values, which are red.
      {{"--input-mean", "0.985", "0", "0"}, maps([](float x) { return x - 0.5F / 0.229F; })},
      {{"--input-std", "0.458", "1", "1"}, maps([](float x) { return x / 2; })},
      {{"--out", in("other.h5")},
       [&](const Said&, const Said&) { EXPECT_TRUE(fs::exists(in("other.h5"))); }},
      {{"--show", in("show.png")},
       [&](const Said&, const Said&) {
         EXPECT_TRUE(file_text(in("show.png")).starts_with("\x89PNG"));
       }},
      {{"--quiet"}, [](const Said& with, const Said& without) {
         EXPECT_EQ(with.end.out, "");
         EXPECT_NE(without.end.out, "");
       }}};
  std::set<std::string> other = everywhere();
  other.insert({"--device", "--threads", "--seed", "--verbose"});    // without effect here
  other.insert({"--checkpoint", "--exif", "--augment", "--views"});  // in ProbeImage
  check(base, {RK_BIN "/probe", "--image", "x", "--help"}, flags, other);
}

TEST_F(ProgramFlags, OfBench) {
  const Flag repeats = {{"--repeats", "2"}, holds_value("/repeats", 2)};
  const auto bench = [](const char* what, const Words& more) {
    return joined({RK_BIN "/bench", what}, more);
  };
  const auto with_common = [&](std::vector<Flag> flags) {
    flags.push_back(repeats);
    flags.push_back({{"--threads", "3"}, holds_value("/threads", 3)});
    return flags;
  };
  std::set<std::string> other = everywhere();
  other.insert({"--device", "--seed", "--quiet", "--verbose"});
  const Words help = {"--help"};

  check(bench("eval", {"--n", "64", "--dim", "8", "--classes", "8", "--repeats", "1"}),
        bench("eval", help),
        with_common({{{"--n", "96"}, holds_value("/n", 96)},
                     {{"--dim", "16"}, holds_value("/dim", 16)},
                     {{"--classes", "4"}, holds_value("/classes", 4)},
                     {{"--gallery", "40"}, holds_value("/symmetric", false)},
                     {{"--seed", "9"}, changes_value("/recall_at_1")}}),
        other);
  check(bench("rank", {"--loss", "rambo_map", "--n", "1000", "--repeats", "1"}),
        bench("rank", help),
        with_common({{{"--n", "2000"}, holds_value("/n", 2000)},
                     {{"--loss", "rambo_apc"}, changes_value("/loss_name")}}),
        other);
  check(bench("loss", {"--loss", "fastap", "--n", "16", "--dim", "8", "--repeats", "1"}),
        bench("loss", help),
        with_common({{{"--loss", "smooth_ap"}, changes_value("/loss_name")},
                     {{"--n", "32"}, holds_value("/n", 32)},
                     {{"--memory", "64"}, holds_value("/memory", 64)},
                     {{"--dim", "16"}, holds_value("/dim", 16)},
                     {{"--per-class", "2"}, holds_value("/per_class", 2)}}),
        other);
  // --precision is for GPUs, loading has workers instead of threads, --resize changes only times.
  other.insert({"--precision", "--threads", "--resize"});
  check(
      bench("loader", {"--data", "glyphs:classes=4,images=4,size=40", "--image-size", "32",
                       "--images", "16", "--batch", "8", "--repeats", "1"}),
      bench("loader", help),
      beside({repeats}, {{{"--data", "glyphs:classes=5,images=4,size=40"}, changes_value("/data")},
                         {{"--split", "test"}, holds_value("/split", "test")},
                         {{"--image-size", "24"}, holds_value("/image_size", 24)},
                         {{"--augment", "flip=0.5"}, changes_value("/augment")},
                         {{"--workers", "3"}, holds_value("/workers", 3)},
                         {{"--batch", "4"}, holds_value("/batch", 4)},
                         {{"--images", "8"}, holds_value("/images", 8)},
                         {{"--cache", "7"}, holds_value("/cache_mib", 7)}}),
      other);
}

}  // namespace
}  // namespace rk
