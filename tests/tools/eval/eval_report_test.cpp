// eval --report and --compare, as their users run them.
#include "engine/base/error.h"
#include "retrieval/files/embeddings_file.h"
#include "retrieval/files/read_rows.h"
#include "retrieval/statistics/bootstrap.h"
#include "tests/data/rotated_png.h"
#include "tests/retrieval/npy_bytes.h"
#include "tests/support/page.h"
#include "tests/support/words.h"
#include "tests/tools/eval/per_query.h"
#include "tests/tools/train/train_program.h"
#include "tools/eval/measure.h"
#include "tools/eval/write_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

namespace rk {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class EvalReport : public TrainProgram {
 protected:
  Words eval(const Words& more) const {
    return joined({RK_BIN "/eval", "--threads", "2", "--json", in("eval.json")}, more);
  }
  json said() const { return json::parse(file_text(in("eval.json"))); }
  PageElement page(const std::string& name = "report.html") const {
    return read_page(file_text(in(name)));
  }
  void write_rows(const std::string& name, bool paths, float length = 1) const {
    EmbeddingSet set;
    set.dim = 2;
    for (int row = 0; row < 12; ++row) {
      const int label = row / 4;
      const double angle = 0.3 * label + 0.17 * (row % 4);
      set.embeddings.push_back(length * static_cast<float>(std::cos(angle)));
      set.embeddings.push_back(length * static_cast<float>(std::sin(angle)));
      set.labels.push_back(label);
      if (paths) set.paths.push_back(fmt::format("{}/c{}/{}.png", in("pics/test"), label, row));
    }
    write_embeddings(in(name), set);
  }
};

TEST_F(EvalReport, OfARunShowsWhatItsEvaluationSaysAndWhatTheRunRecorded) {
  folder_.classes("pics/train/c", 8, 6);
  folder_.classes("pics/val/v", 5, 6);
  folder_.classes("pics/test/<script>", 6, 5);
  ASSERT_EQ(run(on_pictures("run", {"--epochs", "3", "--eval-train", "500"}, 1)).code, 0);
  const Words words = eval({"--checkpoint", in("run/best.h5"), "--data", "folder:" + in("pics"),
                            "--report", in("report.html")});
  const Finished done = run(words);
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_TRUE(holds(done.err, "report: " + in("report.html")));
  EXPECT_FALSE(said()["metrics"].contains("per_query")) << "nobody asked for it";
  const PageElement root = page();
  for (const char* key : {"recall_at_1", "map_at_r", "map", "roc_auc", "jsd"}) {
    EXPECT_TRUE(holds(root.text, fmt::format("{:.4f}", said()["metrics"][key].get<double>())));
  }
  EXPECT_TRUE(holds(root.text, "Held out while training (split val)"));
  EXPECT_EQ(find_all(root, "figure").size(), 10U);
  // The chart's table must hold the values of each epoch.
  const std::vector<json> lines = metrics("run");
  for (const json& line : lines) {
    for (const double value :
         {line["map_at_r"].get<double>(), line["train"]["jsd"].get<double>()}) {
      EXPECT_TRUE(holds(root.text, fmt::format("{:.4g}", value))) << value;
    }
  }
  EXPECT_FALSE(find_all(root, "img").empty());
  EXPECT_TRUE(holds(root.text, "<script>0")) << "a class's name";
  EXPECT_EQ(find_all(root, "script").size(), 1U);
  for (const char* words_of_it :
       {"SHA-256 of the checkpoint", "smooth_ap", "resnet20", RK_VERSION}) {
    EXPECT_TRUE(holds(root.text, words_of_it)) << words_of_it;
  }
  // A report may be replaced, other pages may not.
  EXPECT_EQ(run(words).code, 0);
  folder_.write("report.html", "<!DOCTYPE html>\n<html>My own</html>");
  const Finished other = run(words);
  EXPECT_EQ(other.code, 3);
  EXPECT_TRUE(holds(other.err, "would put a report in its place"));
  EXPECT_TRUE(holds(file_text(in("report.html")), "My own"));

  // If metrics.jsonl is another run's or damaged, the checkpoint's own history must be used.
  const std::string record = file_text(in("run/metrics.jsonl"));
  for (const std::string& text : {std::string("{\"epoch\": 0, \"map_at_r\": 0.987654}\n[]\n{"),
                                  record + "{\"epoch\": 7, \"map_at_r\": [[[[\n"}) {
    folder_.write("run/metrics.jsonl", text);
    fs::remove(in("report.html"));
    const Finished odd = run(words);
    EXPECT_EQ(odd.code, 0) << odd.err;
    EXPECT_EQ(find_all(page(), "figure").size(), 10U);
    EXPECT_FALSE(holds(page().text, "0.9877"));
  }
}

TEST_F(EvalReport, HoldsTheNmiWhereItWasAskedFor) {
  write_rows("plain.h5", false);
  const Words words = eval({"--embeddings", in("plain.h5"), "--report", in("report.html")});
  ASSERT_EQ(run(words).code, 0);
  EXPECT_FALSE(holds(page().text, "NMI"));
  ASSERT_EQ(run(joined(words, {"--nmi"})).code, 0);
  EXPECT_TRUE(holds(page().text, fmt::format("{:.4f}", said()["metrics"]["nmi"].get<double>())));
  EXPECT_TRUE(holds(page().text, "NMI"));
}

TEST_F(EvalReport, OfEmbeddingsShowsPicturesWhereTheyAre) {
  write_rows("plain.h5", false);
  ASSERT_EQ(run(eval({"--embeddings", in("plain.h5"), "--report", in("report.html")})).code, 0);
  EXPECT_TRUE(holds(page().text, "There are no pictures to show: " + in("plain.h5") +
                                     " does not say where they are"));
  EXPECT_TRUE(find_all(page(), "img").empty());
  write_rows("paths.h5", true);
  ASSERT_EQ(run(eval({"--embeddings", in("paths.h5"), "--report", in("report.html")})).code, 0);
  EXPECT_TRUE(holds(page().text, "is not where " + in("paths.h5") + " says it is"));
  folder_.classes("pics/test/c", 3, 12);
  write_rows("paths.h5", true);
  EmbeddingSet set = read_embeddings(in("paths.h5"));
  std::size_t row = 0;
  for (const auto& entry : fs::recursive_directory_iterator(in("pics/test"))) {
    if (entry.is_regular_file() && row < set.paths.size()) set.paths[row++] = entry.path().string();
  }
  set.paths[0] = in("gone.png");  // one that is gone hides no others
  set.paths[3] = "/etc/passwd";   // no picture: its content must not get into the report
  write_embeddings(in("paths.h5"), set);
  const Finished done = run(eval({"--embeddings", in("paths.h5"), "--gallery", in("paths.h5"),
                                  "--report", in("report.html")}));
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_GT(find_all(page(), "img").size(), 50U);
  EXPECT_TRUE(holds(page().text, "picture cannot be read"));
  EXPECT_FALSE(holds(file_text(in("report.html")), "root:"));
}

TEST_F(EvalReport, OfLongRowsShowsNoHistogramOfCutScores) {
  write_rows("one.h5", false);
  write_rows("short.h5", false, 0.7F);
  write_rows("long.h5", false, 3);
  const auto shows = [&](const Words& more) {
    const Finished done = run(joined(eval(more), {"--report", in("report.html")}));
    EXPECT_EQ(done.code, 0) << done.err;
    const std::string text = page().text;
    EXPECT_FALSE(holds(text, "Training")) << "rows from a file";
    EXPECT_NE(holds(text, "Evaluated here"), holds(text, "scores leave [-1, 1]"));
    return holds(text, "Evaluated here");
  };
  EXPECT_TRUE(shows({"--embeddings", in("one.h5")}));
  EXPECT_TRUE(shows({"--embeddings", in("short.h5")})) << "their scores stay in [-1, 1]";
  EXPECT_FALSE(shows({"--embeddings", in("long.h5")}));
  EXPECT_TRUE(shows({"--embeddings", in("long.h5"), "--normalize"}));
  EXPECT_FALSE(shows({"--embeddings", in("one.h5"), "--gallery", in("long.h5")}));
}

// Pictures are shown as the network saw them, and found beside their file whatever of it is read.
TEST_F(EvalReport, OfEmbeddingsTurnsPicturesAsTheFileSays) {
  folder_.classes("pics/test/c", 3, 4);
  write_rows("e.h5", true);
  EmbeddingSet set = read_embeddings(in("e.h5"));
  set.network = std::string(64, '0');
  set.paths.clear();
  for (const auto& entry : fs::recursive_directory_iterator(in("pics/test"))) {
    if (!entry.is_regular_file()) continue;
    set.paths.push_back(fs::relative(entry.path(), folder_.path()).string());
    folder_.write(set.paths.back(), rotated_png(file_text(entry.path().string())));
  }
  ASSERT_EQ(set.paths.size(), 12U);
  std::vector<std::vector<std::string>> shown;
  for (const char* exif : {"ignore", "turn"}) {
    set.exif = exif;
    write_embeddings(in("e.h5"), set);
    ASSERT_EQ(run_to_end(eval({"--embeddings", in("e.h5:/embeddings"), "--labels", in("e.h5"),
                               "--report", in("report.html")}),
                         "/")
                  .code,
              0);
    std::vector<std::string>& sources = shown.emplace_back();
    const PageElement root = page();
    for (const PageElement* image : find_all(root, "img")) {
      sources.push_back(image->attribute("src"));
    }
  }
  ASSERT_FALSE(shown[0].empty());
  EXPECT_EQ(shown[0].size(), shown[1].size());
  EXPECT_NE(shown[0], shown[1]);
}

TEST_F(EvalReport, TwoRunsAreCompared) {
  ASSERT_EQ(run(on_pictures("a", {"--epochs", "1"}, 1)).code, 0);
  ASSERT_EQ(run(on_pictures("b", {"--epochs", "2", "--lr", "0.01"}, 3)).code, 0);
  const Words both = {"--compare",    in("a/"), in("b"),      "--data", "folder:" + in("pics"),
                      "--confidence", "0.9",    "--resample", "queries"};
  const Finished done = run(eval(joined(both, {"--report", in("report.html")})));
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_TRUE(holds(done.out, "\nA: " + in("a") + "; the network was trained on none of these"));
  EXPECT_TRUE(holds(done.out, "\nB: " + in("b") + "; the network was trained on none of these"));
  EXPECT_TRUE(holds(done.out, "90 % interval of B - A, over queries"));
  EXPECT_TRUE(holds(done.out, "some row differs far more often, since queries of one class"));
  const json result = said();
  std::vector<PerQuery> queries(2);
  for (std::size_t r = 0; r < 2; ++r) {
    const std::string name = r == 0 ? "a" : "b";
    EXPECT_EQ(result["runs"][r]["run"], in(name));
    EXPECT_FALSE(result["runs"][r]["metrics"].contains("per_query"));
    ASSERT_EQ(
        run({RK_BIN "/eval", "--checkpoint", in(name + "/best.h5"), "--data",
             "folder:" + in("pics"), "--threads", "2", "--per-query", "--json", in("one.json")})
            .code,
        0);
    const json one = json::parse(file_text(in("one.json")))["metrics"];
    EXPECT_EQ(result["runs"][r]["metrics"]["map_at_r"], one["map_at_r"]);
    queries[r] = per_query_of(one);
  }
  // Every line has its own values and interval.
  const std::vector<std::int64_t> recall_at = {1, 2, 4, 8};
  const RankIntervals of = bootstrap_difference(Context(1), queries[0], queries[1], recall_at,
                                                {.confidence = 0.9, .classes = {}});
  std::vector<std::tuple<std::string, std::string, Interval>> lines = {
      {"R-Precision", "r_precision", of.r_precision},
      {"MAP@R", "map_at_r", of.map_at_r},
      {"mAP", "map", of.map}};
  for (std::size_t k = 0; k < recall_at.size(); ++k) {
    lines.emplace_back(fmt::format("R@{}", recall_at[k]), fmt::format("recall_at_{}", recall_at[k]),
                       of.recall[k]);
  }
  for (const auto& [name, key, interval] : lines) {
    const double a = result["runs"][0]["metrics"][key], b = result["runs"][1]["metrics"][key];
    EXPECT_EQ(result["difference"][key],
              json({{"value", b - a}, {"low", interval.low}, {"high", interval.high}}))
        << key;
    std::string told = "not told apart";
    if (interval.low > 0) told = "B is higher";
    if (interval.high < 0) told = "A is higher";
    const std::string line =
        fmt::format("  {:<14}{:>10.4f}{:>10.4f}{:>+10.4f}   {:+.4f} to {:+.4f}   {}\n", name, a, b,
                    b - a, interval.low, interval.high, told);
    EXPECT_TRUE(holds(done.out, line)) << line << done.out;
  }
  const json& difference = result["difference"]["map_at_r"];
  EXPECT_EQ(difference["value"].get<double>(),
            result["runs"][1]["metrics"]["map_at_r"].get<double>() -
                result["runs"][0]["metrics"]["map_at_r"].get<double>());
  EXPECT_LT(difference["low"].get<double>(), difference["high"].get<double>());
  const PageElement root = page();
  EXPECT_TRUE(holds(root.text, in("a") + " and " + in("b")));
  EXPECT_TRUE(holds(root.text, fmt::format("{:+.4f}", difference["value"].get<double>())));
  EXPECT_TRUE(holds(root.text, "90 % interval"));

  // What they were trained with is told where it differs, and only there.
  const json& settings = result["settings"];
  EXPECT_EQ(settings["lr"], json({{"a", "0.001"}, {"b", "0.01"}}));
  EXPECT_EQ(settings["epochs"], json({{"a", "1"}, {"b", "2"}}));
  EXPECT_FALSE(settings.contains("loss"));
  EXPECT_TRUE(holds(done.out, "\n  Settings that differ  A"));
  EXPECT_TRUE(holds(done.out, "\n  epochs                1"));
  EXPECT_TRUE(holds(root.text, "Settings that differ"));
  EXPECT_FALSE(holds(done.err, "the same network")) << done.err;

  // Flags without effect in a comparison must be named.
  const Finished idle = run(eval({"--compare", in("a"), in("b"), "--data", "folder:" + in("pics"),
                                  "--nmi", "--curves", "--per-class", "--confidence", "0.9"}));
  ASSERT_EQ(idle.code, 0) << idle.err;
  for (const char* flag : {"--nmi", "--curves", "--per-class"}) {
    EXPECT_TRUE(holds(idle.err, std::string(flag) + ": has no effect with --compare"));
  }
  EXPECT_FALSE(holds(idle.err, "--confidence: has no effect")) << idle.err;

  // What both runs' figures must be read with is in the report and the JSON, once.
  folder_.classes("one/test/x", 1, 4);
  ASSERT_EQ(run(eval({"--compare", in("a"), in("b"), "--data", "folder:" + in("one"), "--report",
                      in("one.html")}))
                .code,
            0);
  const std::string note = "folder:" + in("one") + ": all of it is one class";
  ASSERT_EQ(said()["notes"].size(), 3U) << said()["notes"];
  EXPECT_TRUE(said()["notes"][0].get<std::string>().starts_with("R@"));
  EXPECT_TRUE(said()["notes"][1].get<std::string>().starts_with(note));
  const std::string few = "there is only one of the classes to draw from";
  EXPECT_TRUE(said()["notes"][2].get<std::string>().starts_with(few));
  EXPECT_TRUE(said()["difference"]["map"]["low"].is_null());
  for (const std::string& text : {note, few}) EXPECT_TRUE(holds(page("one.html").text, text));

  // A run compared with itself must show no difference.
  const Finished itself =
      run(eval({"--compare", in("a"), in("a/best.h5"), "--data", "folder:" + in("pics")}));
  ASSERT_EQ(itself.code, 0) << itself.err;
  EXPECT_TRUE(holds(itself.out, "not told apart"));
  EXPECT_FALSE(holds(itself.out, "is higher")) << itself.out;
  EXPECT_FALSE(holds(itself.out, "Settings that differ")) << itself.out;
  EXPECT_TRUE(holds(itself.err, "A and B are the same network"));
  EXPECT_FALSE(said().contains("settings"));
  EXPECT_EQ(said()["difference"]["map"]["low"], 0.0);
  EXPECT_EQ(said()["difference"]["map"]["high"], 0.0);

  // Of networks that read pictures differently both readings must be said.
  const std::string pics = "folder:" + in("pics");
  ASSERT_EQ(run(on_pictures("turns", {"--epochs", "1", "--data", pics + ",exif=turn"}, 1)).code, 0);
  const Finished unlike =
      run(eval({"--compare", in("turns"), in("a"), "--data", pics, "--report", in("unlike.html")}));
  ASSERT_EQ(unlike.code, 0) << unlike.err;
  EXPECT_TRUE(unlike.out.starts_with("A: " + pics + ",exif=turn, split test: ")) << unlike.out;
  EXPECT_TRUE(holds(unlike.out, "; B: " + pics + ", split test: "));
  EXPECT_TRUE(holds(unlike.err, "note: the two networks read the pictures differently"));
  EXPECT_TRUE(holds(page("unlike.html").text, "the two networks read the pictures differently"));
  EXPECT_FALSE(holds(itself.err, "differently"));

  const auto refused = [&](const Words& more, int code, const std::string& why) {
    const Finished end = run(eval(more));
    EXPECT_EQ(end.code, code) << end.err;
    EXPECT_TRUE(holds(end.err, why));
  };
  refused({"--compare", in("a"), in("b")}, 2, "--data is missing");
  refused({"--compare", in("a"), "--data", "folder:" + in("pics")}, 2, "--compare");
  refused({"--compare", in("a"), in("b"), in("a"), "--data", "folder:" + in("pics")}, 2,
          "give two runs, or two files of embeddings");
  refused({"--compare", in("a"), in("pics"), "--data", "folder:" + in("pics")}, 3,
          in("pics") + ": holds no best.h5");
  refused(joined(both, {"--checkpoint", in("a/best.h5")}), 2,
          "leave --checkpoint and --embeddings out");
  refused(joined(both, {"--save-embeddings", in("e.h5")}), 2, "--save-embeddings");
  refused(joined(both, {"--normalize"}), 2, "--normalize: is for --embeddings and --gallery");
  refused(joined(both, {"--report", in("a/best.h5"), "--force"}), 2, "is the file that is read");
  write_rows("plain.h5", false);
  refused({"--embeddings", in("plain.h5"), "--data", "folder:" + in("pics")}, 2,
          "--data: is for pictures that a network embeds; give --checkpoint RUN/best.h5");
}

// What a network has seen of the images flatters it, so each run must be told its own.
TEST_F(EvalReport, EachOfTwoRunsIsToldWhatItHasSeen) {
  ASSERT_EQ(run(on_pictures("a", {}, 1)).code, 0);
  ASSERT_EQ(run(command("g", {}, 1)).code, 0);
  const auto compare = [&](const std::string& first, const std::string& second,
                           const std::string& split) {
    Finished done = run(eval({"--compare", in(first), in(second), "--data", "folder:" + in("pics"),
                              "--split", split, "--report", in("report.html")}));
    EXPECT_EQ(done.code, 0) << done.err;
    return done;
  };
  const std::string seen = "the network was trained on 8 of these classes (by name)";
  const std::string unseen = "the network was trained on none of these classes (by name)";
  const std::string noted = in("a") + ": 8 of the 8 classes of folder:" + in("pics") +
                            " are what " + in("a/best.h5") + " was trained on";
  for (const bool first : {true, false}) {
    const Finished done = first ? compare("a", "g", "train") : compare("g", "a", "train");
    const std::size_t a = first ? 0 : 1;
    const std::string told_a = in("a") + "; " + seen, told_g = in("g") + "; " + unseen;
    EXPECT_TRUE(holds(
        done.out, first ? "A: " + told_a + "\nB: " + told_g : "A: " + told_g + "\nB: " + told_a));
    EXPECT_TRUE(holds(done.err, "are what " + in("a/best.h5") + " was trained on"));
    const json result = said();
    EXPECT_EQ(result["runs"][a]["classes_trained_on"], 8);
    EXPECT_EQ(result["runs"][1 - a]["classes_trained_on"], 0);
    for (const std::string& text : {noted, std::string("there are only 8 classes to draw from")}) {
      EXPECT_EQ(std::ranges::count_if(
                    result["notes"],
                    [&](const json& each) { return each.get<std::string>().starts_with(text); }),
                1)
          << result["notes"];
    }
    for (const std::string& text : {seen, unseen, noted}) EXPECT_TRUE(holds(page().text, text));
  }
  const Finished chosen = compare("a", "g", "test");
  EXPECT_TRUE(
      holds(chosen.out, in("a") + "; " + unseen + "; its epoch was chosen on these classes"));
  EXPECT_TRUE(holds(chosen.out, "interval of B - A, over classes"));
  EXPECT_TRUE(holds(chosen.out, "some row differs in one of five comparisons"));
  const json result = said();
  EXPECT_EQ(result["runs"][0]["chose_the_epoch"], true);
  EXPECT_FALSE(result["runs"][1].contains("chose_the_epoch"));
}

// Rows that are lost after the metrics were taken, while the report searches, must not get into it.
TEST(EvalReportOfMappedRows, OfAFileThatBecameShorterIsNotWritten) {
  const TemporaryFolder folder;
  const std::string rows_path = folder.in("e.npy");
  const std::string page_path = folder.in("report.html");
  constexpr int kRows = 512, kDim = 32;
  std::vector<float> values;
  std::vector<std::int64_t> labels;
  for (int row = 0; row < kRows; ++row) {
    labels.push_back(row % 64);
    for (int d = 0; d < kDim; ++d) values.push_back(d == row % kDim ? 1.0F : 0.01F);
  }
  folder.write("e.npy", npy_rows(values, kRows, kDim));
  folder.write("y.npy", npy_labels(labels));
  const auto report = [&](bool cut) {
    EvaluatedRows rows;
    rows.queries.name = rows_path;
    rows.queries.set = read_rows({rows_path, folder.in("y.npy")}).set;
    EXPECT_TRUE(rows.queries.set.mapped);
    const Context context(1);
    CommonOptions common;
    common.quiet = true;
    const Measured measured = measure(context, rows, {.per_query = true}, common);
    if (cut) fs::resize_file(rows_path, 4096);
    const StatisticsOptions statistics;
    ReportFile file{.path = page_path, .rows = rows, .statistics = statistics};
    file.runs.push_back(reported_run(
        context, rows_path, "", rows, measured.metrics,
        draw_intervals(context, rows.queries, measured.metrics, statistics, common), common));
    write_report(context, std::move(file), common);
  };
  report(false);
  EXPECT_TRUE(fs::exists(page_path));
  fs::remove(page_path);
  EXPECT_TRUE(holds(message_of<InputError>([&] { report(true); }),
                    rows_path + ": was written to while it was read"));
  EXPECT_FALSE(fs::exists(page_path));
}

}  // namespace
}  // namespace rk
