// eval --compare of files of embeddings: it says what evaluating each of them says.
#include "engine/base/random.h"
#include "retrieval/files/embeddings_file.h"
#include "retrieval/statistics/bootstrap.h"
#include "tests/support/folder_test.h"
#include "tests/support/messages.h"
#include "tests/support/page.h"
#include "tests/support/program_run.h"
#include "tests/support/random_seed.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/words.h"
#include "tests/tools/eval/per_query.h"
#include "tests/tools/train/train_program.h"
#include "tools/eval/eval_command.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace rk {
namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

// What two networks could have made of the same pictures.
struct Drawn {
  std::int64_t classes, dim, candidates;
  bool gallery, cameras, names;
};

class CompareFiles : public FolderTest<TemporaryFolder> {
 protected:
  Finished eval(const Words& words) const {
    return run_here("eval", joined({"--threads", "2", "--json", in("out.json")}, words),
                    make_eval());
  }
  json said() const { return json::parse(std::ifstream(in("out.json"))); }

  // Rows of a file: `pictures` draws what both files share, `network` what differs.
  void write(const std::string& name, const Drawn& drawn, std::int64_t rows, CounterRandom pictures,
             CounterRandom& network, bool turn_names) const {
    EmbeddingSet set;
    set.dim = drawn.dim;
    for (std::int64_t i = 0; i < rows; ++i) {
      set.labels.push_back(pictures.below(drawn.classes));
      if (drawn.cameras) set.cameras.push_back(pictures.below(3));
      set.paths.push_back(fmt::format("{}/{}.png", name, i));
      for (std::int64_t d = 0; d < drawn.dim; ++d) {
        const double own = d == set.labels.back() % drawn.dim ? 1.5 : 0;
        set.embeddings.push_back(static_cast<float>(own + network.normal()));
      }
    }
    if (drawn.names) {
      for (std::int64_t c = 0; c < drawn.classes; ++c) set.classes.push_back(fmt::format("c{}", c));
    }
    if (drawn.names && turn_names) {  // the other file numbers the same classes differently
      std::ranges::reverse(set.classes);
      for (std::int64_t& label : set.labels) label = drawn.classes - 1 - label;
    }
    write_embeddings(in(name), set);
  }
  // Four of the same pictures: aq.h5, bq.h5, ag.h5, bg.h5.
  void write_both(const Drawn& drawn, std::int64_t rows, std::uint64_t seed) const {
    CounterRandom network(seed, 1, 0);
    for (const char* name : {"a", "b"}) {
      const bool turn = *name == 'b';
      write(name + std::string("q.h5"), drawn, rows, CounterRandom(seed, 2, 0), network, turn);
      if (!drawn.gallery) continue;
      write(name + std::string("g.h5"), drawn, drawn.candidates, CounterRandom(seed, 3, 0), network,
            turn);
    }
  }
};

TEST_F(CompareFiles, SayWhatEvaluatingEachSays) {
  for (const std::uint64_t seed : random_seeds(40)) {
    SCOPED_TRACE(seed);
    CounterRandom draw(seed, 0, 0);
    const Drawn drawn = {.classes = 1 + draw.below(9),
                         .dim = 2 + draw.below(6),
                         .candidates = 1 + draw.below(60),
                         .gallery = draw.below(2) == 1,
                         .cameras = draw.below(2) == 1,
                         .names = draw.below(2) == 1};
    write_both(drawn, 1 + draw.below(50), seed);
    const bool normalize = draw.below(2) == 1;
    const bool classes = draw.below(2) == 1;
    Words common = {"--per-query"};
    if (normalize) common.emplace_back("--normalize");
    const auto with_gallery = [&](Words words, const Words& files) {
      return drawn.gallery ? joined(joined(std::move(words), {"--gallery"}), files) : words;
    };
    std::vector<json> one;
    std::vector<PerQuery> queries;
    for (const std::string name : {"a", "b"}) {
      const Finished done = eval(
          with_gallery(joined({"--embeddings", in(name + "q.h5")}, common), {in(name + "g.h5")}));
      ASSERT_EQ(done.code, 0) << done.err;
      one.push_back(said()["metrics"]);
      queries.push_back(per_query_of(one.back()));
    }
    const std::vector<std::int64_t> labels = read_embeddings(in("bq.h5")).labels;
    const Finished done = eval(
        with_gallery(joined({"--compare", in("aq.h5"), in("bq.h5"), "--seed", "7", "--recall-at",
                             "1,3", "--resample", classes ? "classes" : "queries"},
                            common),
                     {in("ag.h5"), in("bg.h5")}));
    ASSERT_EQ(done.code, 0) << done.err;
    const json result = said();
    for (std::size_t i = 0; i < 2; ++i) {
      for (const char* key : {"map", "map_at_r", "r_precision", "recall_at_1", "per_query", "jsd",
                              "roc_auc", "num_queries", "num_gallery"}) {
        EXPECT_EQ(result["runs"][i]["metrics"][key], one[i][key]) << key;
      }
      EXPECT_EQ(result["runs"][i]["gallery"],
                drawn.gallery ? in(i == 0 ? "ag.h5" : "bg.h5") : std::string());
    }
    const std::vector<std::int64_t> recall_at = {1, 3};
    const RankIntervals expected =
        bootstrap_difference(Context(1), queries[0], queries[1], recall_at,
                             {.confidence = 0.95,
                              .seed = 7,
                              .classes = classes ? std::span<const std::int64_t>(labels)
                                                 : std::span<const std::int64_t>()});
    const json& difference = result["difference"]["map_at_r"];
    const json interval = {{"low", expected.map_at_r.low}, {"high", expected.map_at_r.high}};
    // NaN becomes null.
    EXPECT_EQ(difference["low"].dump(), json::parse(interval.dump())["low"].dump());
    EXPECT_EQ(difference["high"].dump(), json::parse(interval.dump())["high"].dump());
    EXPECT_EQ(result["seed"], 7);
    EXPECT_EQ(result["data"], "");
    EXPECT_EQ(result["split"], "");
    EXPECT_FALSE(holds(done.out, "two networks")) << done.out;
    EXPECT_TRUE(holds(done.out, "\nB: " + in("bq.h5") + ": ")) << done.out;
  }
}

TEST_F(CompareFiles, RefuseWhatIsNotOfTheSamePictures) {
  const Drawn drawn = {
      .classes = 4, .dim = 3, .candidates = 9, .gallery = true, .cameras = true, .names = true};
  write_both(drawn, 12, 5);
  const auto compare = [&](const Words& more) {
    return eval(joined({"--compare", in("aq.h5"), in("bq.h5")}, more));
  };
  const Words galleries = {"--gallery", in("ag.h5"), in("bg.h5")};
  ASSERT_EQ(compare(galleries).code, 0) << compare(galleries).err;
  const auto changed = [&](const std::string& name, auto&& change, const std::string& why) {
    const EmbeddingSet whole = read_embeddings(in(name));
    EmbeddingSet set = whole;
    change(set);
    write_embeddings(in(name), set);
    const Finished done = compare(galleries);
    write_embeddings(in(name), whole);
    EXPECT_EQ(done.code, 3) << name << done.err;
    EXPECT_TRUE(holds(done.err, "error: " + in(name) + ": " + why)) << done.err;
    EXPECT_TRUE(done.out.empty()) << done.out;
  };
  const auto drop_last = [](EmbeddingSet& set) {
    set.labels.pop_back();
    set.cameras.pop_back();
    set.paths.pop_back();
    set.embeddings.resize(set.embeddings.size() - 3);
  };
  const std::string same = "; give embeddings of the same pictures, in the same order";
  changed("bq.h5", drop_last, fmt::format("11 rows, but {} has 12{}", in("aq.h5"), same));
  changed("bg.h5", drop_last, fmt::format("8 rows, but {} has 9{}", in("ag.h5"), same));
  for (const auto& [b, a] : {std::pair{"bq.h5", "aq.h5"}, {"bg.h5", "ag.h5"}}) {
    const EmbeddingSet set_a = read_embeddings(in(a));
    const EmbeddingSet set_b = read_embeddings(in(b));
    const std::int64_t other = (set_b.labels[5] + 1) % 4;
    changed(
        b, [&](EmbeddingSet& set) { set.labels[5] = other; },
        fmt::format("row 5 is of class '{}', in {} of 'c{}'{}",
                    set_b.classes[static_cast<std::size_t>(other)], in(a), set_a.labels[5], same));
    changed(
        b, [&](EmbeddingSet& set) { set.cameras[8] = 17; },
        fmt::format("row 8 is of camera '17', in {} of '{}'{}", in(a), set_a.cameras[8], same));
    changed(
        b, [&](EmbeddingSet& set) { std::swap(set.paths[2], set.paths[3]); },
        fmt::format("row 2 is of the picture '3.png', in {} of '2.png'{}", in(a), same));
  }
  const auto without_cameras = [](EmbeddingSet& set) { set.cameras.clear(); };
  changed("bq.h5", without_cameras, "no cameras, but " + in("bg.h5") + " has them");
  changed(
      "bq.h5", [](EmbeddingSet& set) { set.classes.clear(); },
      "its labels are numbers, but " + in("bg.h5") + " names its classes");
  // Without galleries, A alone says what B must have.
  EmbeddingSet set = read_embeddings(in("bq.h5"));
  without_cameras(set);
  write_embeddings(in("none.h5"), set);
  for (const Words& words : {Words{in("aq.h5"), in("none.h5")}, {in("none.h5"), in("aq.h5")}}) {
    const Finished done = eval(joined({"--compare"}, words));
    EXPECT_EQ(done.code, 3);
    EXPECT_TRUE(holds(done.err, in("none.h5") + ": no cameras, but " + in("aq.h5") + " has them"));
  }
  // Pictures that lie elsewhere are the same pictures; what is not known refuses nothing.
  set = read_embeddings(in("bq.h5"));
  for (std::string& path : set.paths) path = "/elsewhere/" + path;
  write_embeddings(in("bq.h5"), set);
  EXPECT_EQ(compare(galleries).code, 0);
  set.paths.clear();
  write_embeddings(in("bq.h5"), set);
  EXPECT_EQ(compare(galleries).code, 0);

  const auto usage = [&](const Words& words, const std::string& why) {
    const Finished done = eval(words);
    EXPECT_EQ(done.code, 2) << done.err;
    EXPECT_TRUE(holds(done.err, why)) << done.err;
  };
  const Words both = {"--compare", in("aq.h5"), in("bq.h5")};
  usage({"--compare", in("aq.h5")}, "give two runs, or two files of embeddings");
  usage(joined(both, {"--gallery", in("ag.h5")}), "give two files, --gallery GALLERY_A GALLERY_B");
  usage(joined(both, {"--gallery", in("ag.h5"), in("bg.h5"), in("ag.h5")}), "A's and B's");
  usage(joined(both, {"--embeddings", in("aq.h5")}), "leave --checkpoint and --embeddings out");
  usage(joined(both, {"--split", "test"}), "--split: is for pictures that a network embeds");
  usage(joined(both, {"--save-neighbours", in("n.h5")}), "of which of the two?");
  usage(joined(both, {"--protocol", "sop"}), "--recall-at names the k");
  usage({"--embeddings", in("aq.h5"), "--gallery", in("ag.h5"), in("bg.h5")}, "give one file");
  usage({"--checkpoint", in("aq.h5"), "--data", "glyphs", "--labels", in("aq.h5")},
        "are those of --embeddings, or of two files to --compare");

  // Where only A's rows are long, the scores of the two share no histogram.
  for (const auto& [name, length] : {std::pair{"one.h5", 1.0F}, {"long.h5", 3.0F}}) {
    EmbeddingSet scaled = read_embeddings(in("aq.h5"));
    for (std::int64_t i = 0; i < scaled.count(); ++i) {
      float* row = scaled.embeddings.data() + i * scaled.dim;
      float squares = 0;
      for (std::int64_t d = 0; d < scaled.dim; ++d) squares += row[d] * row[d];
      for (std::int64_t d = 0; d < scaled.dim; ++d) row[d] *= length / std::sqrt(squares);
    }
    write_embeddings(in(name), scaled);
    const Finished done = eval({"--compare", in(name), in("one.h5"), "--report", in("page.html")});
    ASSERT_EQ(done.code, 0) << done.err;
    std::stringstream text;
    text << std::ifstream(in("page.html")).rdbuf();
    EXPECT_EQ(holds(text.str(), "scores leave [-1, 1]"), length > 1);
  }

  // A file with itself cannot differ, which is said.
  const Finished itself = eval({"--compare", in("aq.h5"), in("aq.h5")});
  ASSERT_EQ(itself.code, 0);
  EXPECT_TRUE(holds(itself.err, "A and B are the same file, so that nothing can differ"));
  EXPECT_FALSE(holds(compare(galleries).err, "the same file"));
}

// Files that two runs have saved are compared as the runs are, with galleries too.
using CompareRuns = TrainProgram;
TEST_F(CompareRuns, AndTheirSavedEmbeddingsAlike) {
  folder_.classes("pics/train/c", 8, 8);
  folder_.classes("pics/query/t", 6, 3);
  folder_.classes("pics/gallery/t", 6, 5);
  const std::string data = "folder:" + in("pics");
  ASSERT_EQ(run(on_pictures("a", {"--test-data", data}, 1)).code, 0);
  ASSERT_EQ(run(on_pictures("b", {"--test-data", data, "--lr", "0.01"}, 2)).code, 0);
  const auto eval = [&](const Words& more) {
    Finished done =
        run(joined({RK_BIN "/eval", "--threads", "2", "--json", in("eval.json")}, more));
    EXPECT_EQ(done.code, 0) << done.err;
    return json::parse(file_text(in("eval.json")));
  };
  for (const std::string name : {"a", "b"}) {
    for (const std::string split : {"query", "gallery"}) {
      eval({"--checkpoint", in(name + "/best.h5"), "--data", data, "--split", split,
            "--save-embeddings", in(fmt::format("{}_{}.h5", name, split))});
    }
  }
  const Words galleries = {"--gallery", in("a_gallery.h5"), in("b_gallery.h5")};
  const json runs = eval(joined({"--compare", in("a"), in("b"), "--data", data, "--split", "query",
                                 "--report", in("runs.html")},
                                galleries));
  const json files = eval(joined(
      {"--compare", in("a_query.h5"), in("b_query.h5"), "--report", in("files.html")}, galleries));
  EXPECT_EQ(runs["difference"], files["difference"]);
  EXPECT_EQ(runs["protocol"],
            "against the gallery, nothing removed; inner product as given; ties "
            "count against the query");
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(runs["runs"][i]["metrics"], files["runs"][i]["metrics"]);
    EXPECT_EQ(runs["runs"][i]["shared_classes"], 6);
  }
  EXPECT_NE(runs["runs"][0]["metrics"], runs["runs"][1]["metrics"]);
  for (const char* name : {"runs.html", "files.html"}) {
    EXPECT_GT(find_all(read_page(file_text(in(name))), "img").size(), 20U) << name;
  }
  // A split of the same data as the gallery says the same, of one network and of two.
  for (const std::string& pictures : {data, in("pics")}) {
    const Words words = {"--data", pictures, "--split", "query", "--gallery-split", "gallery"};
    const json split = eval(joined({"--compare", in("a"), in("b")}, words));
    EXPECT_EQ(split["difference"], runs["difference"]);
    EXPECT_EQ(split["gallery_split"], "gallery");
    const json one = eval(joined({"--checkpoint", in("a/best.h5")}, words));
    EXPECT_EQ(one["gallery_classes"], 6);
    const auto notes = one["notes"].get<std::vector<std::string>>();
    EXPECT_EQ(std::set(notes.begin(), notes.end()).size(), notes.size()) << one["notes"];
    EXPECT_FALSE(holds(one["notes"].dump(), "is both queries and gallery"));
    for (const char* key : {"map", "map_at_r", "recall_at_1", "roc_auc", "num_gallery"}) {
      EXPECT_EQ(one["metrics"][key], runs["runs"][0]["metrics"][key]) << key;
    }
  }
  const auto refused = [&](const Words& more, const std::string& why) {
    const Finished done = run(joined({RK_BIN "/eval", "--data", data, "--split", "query"}, more));
    EXPECT_EQ(done.code, 2) << done.err;
    EXPECT_TRUE(holds(done.err, why)) << done.err;
  };
  const Words one = {"--checkpoint", in("a/best.h5"), "--gallery-split"};
  refused(joined(one, {"Query"}), "is --split too, so that every picture would find itself");
  refused(joined(one, {"gallery", "--gallery", in("a_gallery.h5")}), "leave one out");
  refused({"--embeddings", in("a_query.h5"), "--gallery-split", "gallery"},
          "--data: is for pictures that a network embeds");
  // The gallery of another network is refused.
  const Finished other =
      run({RK_BIN "/eval", "--compare", in("a"), in("b"), "--data", data, "--split", "query",
           "--gallery", in("a_gallery.h5"), in("a_gallery.h5")});
  EXPECT_EQ(other.code, 3) << other.err;
  EXPECT_TRUE(holds(other.err, "embedded by another network"));
}

}  // namespace
}  // namespace rk
