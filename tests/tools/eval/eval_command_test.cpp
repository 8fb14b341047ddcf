#include "tools/eval/eval_command.h"

#include "engine/base/random.h"
#include "engine/base/sanitizers.h"
#include "retrieval/files/embeddings_file.h"
#include "tests/retrieval/npy_bytes.h"
#include "tests/support/child_process.h"
#include "tests/support/folder_test.h"
#include "tests/support/messages.h"
#include "tests/support/peak_memory.h"
#include "tests/support/program_run.h"
#include "tests/support/random_seed.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/weights/torch_writer.h"
#include "tests/support/words.h"
#include "weights/hdf5/file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

namespace rk {
namespace {

int run_eval(const std::vector<std::string>& arguments, std::string* said = nullptr) {
  Finished done = run_here("eval", arguments, make_eval());
  if (said != nullptr) *said = std::move(done.err);
  return done.code;
}

class EvalCommand : public FolderTest<TemporaryFolder> {};

TEST_F(EvalCommand, WritesTheMetricsAsJson) {
  const std::string json = in("eval_command.json");
  ASSERT_EQ(run_eval({"--embeddings", RK_TEST_GOLDEN "/metrics/collapsed.h5", "--per-query",
                      "--json", json}),
            0);
  const nlohmann::json result = nlohmann::json::parse(std::ifstream(json));
  const nlohmann::json& metrics = result.at("metrics");
  EXPECT_EQ(metrics.at("recall_at_1"), 0.0);  // a collapsed embedding must not look good
  EXPECT_EQ(metrics.at("roc_auc"), 0.5);
  EXPECT_EQ(metrics.at("per_query").at("ap").size(), metrics.at("num_queries"));
}

// A file's name may hold what a terminal obeys.
TEST_F(EvalCommand, NamesAreShownAsOneLine) {
  std::filesystem::copy_file(RK_TEST_GOLDEN "/metrics/single.h5", in("a\n\x1b[31mb.h5"));
  const Finished done = run_here("eval", {"--embeddings", in("a\n\x1b[31mb.h5")}, make_eval());
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_TRUE(holds(done.out, "/a\\n\\x1b[31mb.h5"));
}

TEST_F(EvalCommand, FlagsWithoutEffectAreTold) {
  const std::vector<std::string> flags = {"--embeddings", RK_TEST_GOLDEN "/metrics/single.h5",
                                          "--per-query",  "--curves",
                                          "--topk",       "3"};
  std::string said;
  ASSERT_EQ(run_eval(flags, &said), 0);
  for (const char* flag : {"--per-query", "--curves", "--topk"}) {
    EXPECT_TRUE(holds(said, std::string(flag) + ": has no effect without --"));
  }
  ASSERT_EQ(
      run_eval(joined(flags, {"--json", in("used.json"), "--save-neighbours", in("n.h5")}), &said),
      0);
  EXPECT_FALSE(holds(said, "has no effect")) << said;
}

TEST_F(EvalCommand, ASearchThatLacksItsNetworkIsTold) {
  std::string said;
  EXPECT_EQ(run_eval({"--index", in("index.h5"), "--query", in("photo.jpg")}, &said), 2);
  EXPECT_TRUE(holds(said, "--checkpoint is missing"));
}

TEST_F(EvalCommand, ANetworksWeightsAreNoEmbeddings) {
  Hdf5Writer writer;
  const std::vector<float> values(4, 1);
  writer.write("/weights/conv1.weight", {2, 2}, values.data());
  folder_.write("weights.h5", writer.finish());
  std::string said;
  EXPECT_EQ(run_eval({"--embeddings", in("weights.h5")}, &said), 3);
  EXPECT_TRUE(holds(said, in("weights.h5") + ": is a network's weights, not embeddings"));
}

TEST_F(EvalCommand, NoFileThatIsReadIsWritten) {
  folder_.write("e.npy", npy_rows({1, 0, 0, 1}, 2, 2));
  folder_.write("y.npy", npy_labels({1, 1}));
  folder_.write("g.npy", npy_rows({1, 0, 0, 1}, 2, 2));
  folder_.write("z.npy", npy_labels({1, 1}));
  for (const char* name : {"e.npy", "y.npy", "g.npy", "z.npy"}) {
    std::string said;
    EXPECT_EQ(
        run_eval({"--embeddings", in("e.npy"), "--labels", in("y.npy"), "--gallery", in("g.npy"),
                  "--gallery-labels", in("z.npy"), "--json", in(name), "--force"},
                 &said),
        2)
        << name;
    EXPECT_TRUE(holds(said, std::string("--json ") + in(name)));
  }
}

TEST_F(EvalCommand, LabelsWithoutTheirRowsAreWrongUsage) {
  folder_.write("e.npy", npy_rows({1, 0, 0, 1}, 2, 2));
  folder_.write("y.npy", npy_labels({1, 1}));
  std::string said;
  EXPECT_EQ(run_eval({"--embeddings", in("e.npy"), "--labels", in("y.npy"), "--gallery-labels",
                      in("y.npy")},
                     &said),
            2);
  EXPECT_TRUE(holds(said, "--gallery-labels requires --gallery;"));
  EXPECT_EQ(run_eval({"--labels", in("y.npy")}, &said), 2);
  EXPECT_TRUE(holds(said, "--labels " + in("y.npy") + ": are those of --embeddings"));
  EXPECT_EQ(run_eval({"--cameras", in("y.npy")}, &said), 2);
  EXPECT_TRUE(holds(said, "--cameras " + in("y.npy") + ": are those of --embeddings"));
  EXPECT_EQ(run_eval({"--embeddings", in("e.npy"), "--labels", in("y.npy"), "--gallery-cameras",
                      in("y.npy")},
                     &said),
            2);
  EXPECT_TRUE(holds(said, "--gallery-cameras requires --gallery;"));
}

// Cameras of files of their own count as those beside the rows do.
TEST_F(EvalCommand, CamerasOfOtherFilesRemoveTheSame) {
  for (const std::uint64_t seed : random_seeds(20)) {
    SCOPED_TRACE(seed);
    CounterRandom draw(seed, 0, 0);
    const auto write = [&](const std::string& name, std::int64_t rows) {
      std::vector<float> values;
      std::vector<std::int64_t> labels, cameras;
      for (std::int64_t i = 0; i < rows; ++i) {
        labels.push_back(draw.below(4));
        cameras.push_back(draw.below(3));
        for (int d = 0; d < 3; ++d) values.push_back(static_cast<float>(draw.normal()));
      }
      const std::string e = npy_rows(values, static_cast<std::size_t>(rows), 3);
      folder_.write(name + "e.npy", e);
      folder_.write(name + "y.npy", npy_labels(labels));
      folder_.write(name + "c.npy", npy_labels(cameras));
      folder_.write(name + ".npz", zip_of({{"embeddings.npy", e},
                                           {"labels.npy", npy_labels(labels)},
                                           {"camids.npy", npy_labels(cameras)}}));
    };
    write("q", 1 + draw.below(30));
    write("g", 1 + draw.below(40));
    const bool gallery = draw.below(2) == 1;
    std::vector<std::string> together = {"--embeddings", in("q.npz")};
    std::vector<std::string> apart = {"--embeddings", in("qe.npy"), "--labels",
                                      in("qy.npy"),   "--cameras",  in("qc.npy")};
    if (gallery) {
      together = joined(together, {"--gallery", in("g.npz")});
      apart = joined(apart, {"--gallery", in("ge.npy"), "--gallery-labels", in("gy.npy"),
                             "--gallery-cameras", in("gc.npy")});
    }
    std::vector<nlohmann::json> said;
    for (const std::vector<std::string>& words : {together, apart}) {
      std::string err;
      ASSERT_EQ(run_eval(joined(words, {"--per-query", "--json", in("out.json")}), &err), 0) << err;
      said.push_back(nlohmann::json::parse(std::ifstream(in("out.json"))));
    }
    EXPECT_EQ(said[0]["metrics"], said[1]["metrics"]);
    EXPECT_EQ(said[0]["array"], "'embeddings'");
    EXPECT_FALSE(said[1].contains("array")) << "a .npy has one";
    EXPECT_EQ(said[0]["cameras"], "'camids'");
    EXPECT_EQ(said[1]["cameras"], in("qc.npy") + ", int64");
    EXPECT_TRUE(holds(said[1]["protocol"], "same label and camera removed"));
  }
}

TEST_F(EvalCommand, AReportIsCalledWhatABrowserOpens) {
  std::string said;
  const std::vector<std::string> flags = {"--embeddings", RK_TEST_GOLDEN "/metrics/single.h5",
                                          "--report"};
  EXPECT_EQ(run_eval(joined(flags, {in("photo.png")}), &said), 2);
  EXPECT_TRUE(holds(said, ".html"));
  EXPECT_FALSE(std::filesystem::exists(in("photo.png")));
  EXPECT_EQ(run_eval(joined(flags, {in("report.html")}), &said), 0) << said;
  EXPECT_TRUE(std::filesystem::exists(in("report.html")));
}

// A query that is also in the gallery finds itself first, which must be reported.
TEST_F(EvalCommand, QueriesThatTheGalleryHoldsAreTold) {
  folder_.write("e.npy", npy_rows({3, 0, 0, 3, 0, 3, 3, 0}, 4, 2));
  folder_.write("g.npy", npy_rows({3, 0, 1, 3, 3, 0}, 3, 2));
  folder_.write("y.npy", npy_labels({1, 2, 2, 1}));
  folder_.write("z.npy", npy_labels({1, 2, 1}));  // it holds one of them twice
  std::string said;
  ASSERT_EQ(
      run_eval({"--embeddings", in("e.npy"), "--labels", in("y.npy"), "--gallery", in("g.npy"),
                "--gallery-labels", in("z.npy"), "--json", in("r.json"), "--report", in("r.html")},
               &said),
      0);
  const std::string held = "2 of the 4 rows in " + in("e.npy") + " are in " + in("g.npy") + " too";
  EXPECT_TRUE(holds(said, held));
  const nlohmann::json result = nlohmann::json::parse(std::ifstream(in("r.json")));
  EXPECT_TRUE(result.at("notes").at(0).get<std::string>().starts_with(held)) << result.at("notes");
  EXPECT_TRUE(holds(file_text(in("r.html")), held));
  EXPECT_TRUE(holds(said, "all rows have length 3"));
  EXPECT_FALSE(holds(said, "--split")) << said;  // which is for pictures
  // A copy under another label flatters nothing.
  folder_.write("other.npy", npy_labels({5, 2, 2}));
  ASSERT_EQ(run_eval({"--embeddings", in("e.npy"), "--labels", in("y.npy"), "--gallery",
                      in("g.npy"), "--gallery-labels", in("other.npy")},
                     &said),
            0);
  EXPECT_FALSE(holds(said, " too and ")) << said;
}

// Undefined figures say why.
TEST_F(EvalCommand, QueriesWithNothingToFindAreTold) {
  folder_.write("e.npy", npy_rows({3, 0, 0, 3, 0, 3, 3, 0}, 4, 2));
  folder_.write("y.npy", npy_labels({1, 2, 2, -1}));
  folder_.write("z.csv", "0001\n0002\n0002\n0001\n");
  folder_.write("z2.csv", "c1\nc2\nc2\nc3\n");
  folder_.write("other.npy", npy_labels({11, 12, 12, 11}));
  const auto notes = [&](const std::string& labels, const std::string& gallery_labels) {
    EXPECT_EQ(
        run_eval({"--embeddings", in("e.npy"), "--labels", in(labels), "--gallery", in("e.npy"),
                  "--gallery-labels", in(gallery_labels), "--json", in("r.json"), "--force", "-q"}),
        0);
    return nlohmann::json::parse(std::ifstream(in("r.json"))).at("notes").dump();
  };
  EXPECT_TRUE(holds(notes("y.npy", "other.npy"),
                    in("y.npy") + ": none of its classes (the first is '1') is in " +
                        in("other.npy") + " (there it is '11'), so that there is nothing to find"));
  EXPECT_TRUE(holds(notes("z.csv", "z2.csv"), "(the first is '0001')"));
  const std::string found = notes("y.npy", "y.npy");
  EXPECT_FALSE(holds(found, "nothing to find"));
  EXPECT_TRUE(holds(found, in("y.npy") + ": 1 row of a label below 0, which"));
  EmbeddingSet set;
  set.dim = 2;
  set.embeddings = {1, 0, 0, 1, 1, 0, 0, 1};
  set.labels = {1, 2, 1, 2};
  set.cameras = {5, 6, 5, 6};
  write_embeddings(in("same.h5"), set);
  std::string said;
  ASSERT_EQ(run_eval({"--embeddings", in("same.h5")}, &said), 0);
  EXPECT_TRUE(holds(said, in("same.h5") +
                              ": all candidates of a query's class have its camera and are "
                              "removed, so that there is nothing to find"));
  EXPECT_TRUE(holds(run_here("eval", {"--embeddings", in("same.h5")}, make_eval()).out,
                    "; cameras: /cameras"));
  set.cameras = {5, 6, 5, 7};
  write_embeddings(in("other.h5"), set);
  ASSERT_EQ(run_eval({"--embeddings", in("other.h5")}, &said), 0);
  EXPECT_FALSE(holds(said, "nothing to find")) << said;
}

// A line of its own for the gallery would reach the terminal as a literal "\n".
TEST_F(EvalCommand, QueriesAndGalleryAreDescribedInOneLine) {
  folder_.write("q.npy", npy_rows({1, 0, 0, 1}, 2, 2));
  folder_.write("g.npy", npy_rows({0, 1, 0.6F, 0.8F}, 2, 2));
  folder_.write("y.npy", npy_labels({1, 2}));
  const Finished done =
      run_here("eval",
               {"--embeddings", in("q.npy"), "--labels", in("y.npy"), "--gallery", in("g.npy"),
                "--gallery-labels", in("y.npy"), "--report", in("r.html")},
               make_eval());
  ASSERT_EQ(done.code, 0) << done.err;
  const std::string gallery = "; in " + in("g.npy") + ": 2 rows of 2 classes";
  EXPECT_TRUE(holds(done.out.substr(0, done.out.find('\n')), gallery)) << done.out;
  EXPECT_FALSE(holds(done.out, "\\n")) << done.out;
  EXPECT_TRUE(holds(file_text(in("r.html")), gallery));
}

// Of the gallery too, and although reading has printed it.
TEST_F(EvalCommand, RowsOfZerosAreInTheNotes) {
  folder_.write("q.npy", npy_rows({0, 0, 1, 0}, 2, 2));
  folder_.write("g.npy", npy_rows({0, 1, 0, 0, 0, 0}, 3, 2));
  folder_.write("y.npy", npy_labels({1, 2}));
  folder_.write("gy.npy", npy_labels({1, 2, 2}));
  ASSERT_EQ(
      run_eval({"--embeddings", in("q.npy"), "--labels", in("y.npy"), "--gallery", in("g.npy"),
                "--gallery-labels", in("gy.npy"), "--normalize", "--json", in("r.json"), "-q"}),
      0);
  const nlohmann::json notes = nlohmann::json::parse(std::ifstream(in("r.json"))).at("notes");
  ASSERT_GE(notes.size(), 2U);
  EXPECT_TRUE(holds(notes[0].get<std::string>(), in("q.npy") + ": 1 row of zeros alone"));
  EXPECT_TRUE(holds(notes[1].get<std::string>(), in("g.npy") + ": 2 rows of zeros alone"));
}

// What the figures must be read with stands wherever they stand.
TEST_F(EvalCommand, NotesAboutTheRowsAreInJsonAndReport) {
  folder_.write("e.npy", npy_rows({3, 0, 0, 2, 0, 3, 3, 0}, 4, 2));
  folder_.write("y.npy", npy_labels({1, 2, 2, 1}));
  folder_.write("each.npy", npy_labels({1, 2, 3, 4}));
  ASSERT_EQ(run_eval({"--embeddings", in("e.npy"), "--labels", in("y.npy"), "--json", in("r.json"),
                      "--report", in("r.html")}),
            0);
  const std::string lengths = "rows have lengths from 2 to 3; cosine similarity wants 1";
  nlohmann::json notes = nlohmann::json::parse(std::ifstream(in("r.json"))).at("notes");
  ASSERT_EQ(notes.size(), 3U);
  EXPECT_TRUE(holds(notes[0].get<std::string>(), lengths));
  EXPECT_TRUE(
      holds(notes[1].get<std::string>(), "R@4, R@8, R@10, R@100, R@1000: a query has at most 3"));
  EXPECT_TRUE(holds(notes[2].get<std::string>(), "there are only 2 classes to draw from"));
  EXPECT_TRUE(holds(file_text(in("r.html")), lengths));
  ASSERT_EQ(run_eval({"--embeddings", in("e.npy"), "--labels", in("each.npy"), "--normalize",
                      "--json", in("r.json")}),
            0);
  notes = nlohmann::json::parse(std::ifstream(in("r.json"))).at("notes");
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_TRUE(holds(notes[0].get<std::string>(), "no class has two rows"));
}

// The JSD's bins hold scores of both kinds where all are alike, however well they are ordered.
TEST_F(EvalCommand, ScoresInOneBinAreNoted) {
  folder_.write("y.npy", npy_labels({1, 1, 2, 2}));
  for (const float apart : {0.02F, 1.0F}) {
    folder_.write("e.npy", npy_rows({1, 0, 1, apart / 4, 1, apart, 1, 1.25F * apart}, 4, 2));
    ASSERT_EQ(run_eval({"--embeddings", in("e.npy"), "--labels", in("y.npy"), "--normalize",
                        "--json", in("r.json"), "--force"}),
              0);
    const nlohmann::json result = nlohmann::json::parse(std::ifstream(in("r.json")));
    EXPECT_EQ(result.at("metrics").at("roc_auc"), 1.0);
    EXPECT_EQ(result.at("metrics").at("jsd") < 0.5, apart < 1);
    EXPECT_EQ(holds(result.at("notes").dump(), "the JSD, over bins of 0.01, says little"),
              apart < 1);
  }
}

// Fifty rows of each of two classes make 4,900 positive pairs, 51 make 5,100.
TEST_F(EvalCommand, AJsdOfFewPairsIsNoted) {
  for (const std::size_t each : {50U, 51U}) {
    CounterRandom random(random_seed(), 0, 0);
    std::vector<float> rows;
    std::vector<std::int64_t> labels;
    for (std::size_t i = 0; i < 2 * each; ++i) {
      labels.push_back(static_cast<std::int64_t>(i % 2));
      for (int d = 0; d < 4; ++d) rows.push_back(static_cast<float>(random.normal()));
    }
    folder_.write("e.npy", npy_rows(rows, 2 * each, 4));
    folder_.write("y.npy", npy_labels(labels));
    ASSERT_EQ(run_eval({"--embeddings", in("e.npy"), "--labels", in("y.npy"), "--normalize",
                        "--json", in("r.json"), "--force"}),
              0);
    const nlohmann::json result = nlohmann::json::parse(std::ifstream(in("r.json")));
    EXPECT_EQ(holds(result.at("notes").dump(), "the JSD of only 4900 positive pairs is too high"),
              each == 50);
  }
}

// R@1 is 1 where only one class can be found, but not where there is nothing to find.
TEST_F(EvalCommand, OneClassIsNotedWhereItIsFound) {
  folder_.write("e.npy", npy_rows({1, 0, 0, 1, 1, 0}, 3, 2));
  folder_.write("one.npy", npy_rows({1, 0}, 1, 2));
  folder_.write("a.npy", npy_labels({5, 5, 5}));
  folder_.write("b.npy", npy_labels({6, 6, 6}));
  folder_.write("c.npy", npy_labels({7}));
  const auto noted = [&](const std::vector<std::string>& more) {
    EXPECT_EQ(run_eval(joined({"--json", in("r.json"), "--force", "--embeddings"}, more)), 0);
    const nlohmann::json result = nlohmann::json::parse(std::ifstream(in("r.json")));
    const bool said = holds(result.at("notes").dump(), "all of it is one class");
    EXPECT_EQ(said, result.at("metrics").at("recall_at_1") == 1.0);
    return said;
  };
  EXPECT_TRUE(noted({in("e.npy"), "--labels", in("a.npy")}));
  const std::vector<std::string> other = {in("e.npy"), "--labels",  in("a.npy"),
                                          "--gallery", in("e.npy"), "--gallery-labels"};
  EXPECT_TRUE(noted(joined(other, {in("a.npy")})));
  EXPECT_FALSE(noted(joined(other, {in("b.npy")})));
  EXPECT_FALSE(noted({in("one.npy"), "--labels", in("c.npy")}));
}

// Rows that cannot be measured must leave no file behind.
TEST_F(EvalCommand, NothingIsWrittenOfRowsThatAreRefused) {
  folder_.write("large.npy", npy_rows({1e20F, 0, 0, 1e20F}, 2, 2));
  folder_.write("small.npy", npy_rows({1e-15F, 0, 0, 1e-15F}, 2, 2));
  folder_.write("y.csv", "1\n1\n");
  for (const char* flag : {"--save-embeddings", "--save-neighbours"}) {
    const auto end = [&](const std::vector<std::string>& rows) {
      std::string said;
      EXPECT_EQ(run_eval(joined(rows, {"--labels", in("y.csv"), flag, in("out.h5")}), &said), 3)
          << said;
      return said;
    };
    EXPECT_TRUE(holds(end({"--embeddings", in("large.npy")}), "large.npy: embeddings: inner"));
    EXPECT_FALSE(std::filesystem::exists(in("out.h5"))) << flag;
    // Scores of these two sets are fine, those within the gallery, for --nmi, are not.
    EXPECT_TRUE(holds(end({"--embeddings", in("small.npy"), "--gallery", in("large.npy"),
                           "--gallery-labels", in("y.csv"), "--nmi"}),
                      "large.npy: gallery: inner"));
    EXPECT_FALSE(std::filesystem::exists(in("out.h5"))) << flag;
  }
}

// What a protocol lacks is said before pictures are embedded, even before the network is opened.
TEST_F(EvalCommand, WhatAProtocolLacksIsSaidFirst) {
  const auto said = [&](const std::string& protocol, const std::vector<std::string>& more) {
    const std::vector<std::string> words = joined(
        {"--checkpoint", in("none.h5"), "--data", "folder:" + in("none"), "--protocol", protocol},
        more);
    std::string out;
    EXPECT_EQ(run_eval(words, &out), 2);
    return out;
  };
  EXPECT_TRUE(holds(said("inshop", {}), "give it with --gallery"));
  EXPECT_TRUE(
      holds(said("veri-wild", {"--gallery", in("none.h5")}), "their cameras with --cameras"));
}

// Drawn galleries know no cameras: those of a file remove nothing, in the neighbours neither.
TEST_F(EvalCommand, DrawnGalleriesIgnoreCameras) {
  EmbeddingSet set;
  set.dim = 4;
  CounterRandom random(random_seed(), 0, 0);
  for (int i = 0; i < 40; ++i) {
    for (int d = 0; d < 4; ++d) {
      set.embeddings.push_back(static_cast<float>(random.uniform(-1, 1)));
    }
    set.labels.push_back(i / 4);
  }
  write_embeddings(in("plain.h5"), set);
  set.cameras.assign(40, 1);  // would remove all candidates of the query's class
  write_embeddings(in("cameras.h5"), set);
  const auto results = [&](const std::string& name, std::string* said) {
    EXPECT_EQ(run_eval({"--embeddings", in(name + ".h5"), "--protocol", "vehicleid-official",
                        "--save-neighbours", in(name + "_found.h5"), "--json", in(name + ".json")},
                       said),
              0);
    return nlohmann::json::parse(std::ifstream(in(name + ".json")));
  };
  std::string said;
  const nlohmann::json with = results("cameras", &said), without = results("plain", nullptr);
  EXPECT_TRUE(holds(said, "knows no cameras"));
  EXPECT_EQ(with.at("metrics"), without.at("metrics"));
  const Hdf5Reader found(in("cameras_found.h5")), expected(in("plain_found.h5"));
  EXPECT_EQ(found.read<std::int64_t>("/neighbours"), expected.read<std::int64_t>("/neighbours"));
  // The rows are of other lengths than 1, which is noted for drawn galleries too.
  EXPECT_TRUE(holds(without.at("notes").dump(), "cosine similarity wants 1"));
}

TEST_F(EvalCommand, DrawnGalleriesFollowTheSeed) {
  std::vector<float> rows;
  std::vector<std::int64_t> labels;
  CounterRandom random(random_seed(), 0, 0);
  for (std::int64_t i = 0; i < 120; ++i) {
    rows.push_back(static_cast<float>(random.uniform(-1, 1)));
    rows.push_back(static_cast<float>(random.uniform(-1, 1)));
    labels.push_back(i / 4);
  }
  folder_.write("e.npy", npy_rows(rows, labels.size(), 2));
  folder_.write("y.npy", npy_labels(labels));
  const auto metrics = [&](const std::string& seed) {
    EXPECT_EQ(run_eval({"--embeddings", in("e.npy"), "--labels", in("y.npy"), "--protocol",
                        "vehicleid-official", "--seed", seed, "--json", in("r.json")}),
              0);
    return nlohmann::json::parse(std::ifstream(in("r.json"))).at("metrics");
  };
  const nlohmann::json first = metrics("5");
  EXPECT_EQ(metrics("5"), first);
  EXPECT_NE(metrics("6"), first);
}

TEST_F(EvalCommand, AProtocolHasItsOwnK) {
  const auto measured = [&](const std::vector<std::string>& more, std::string* said) {
    const std::vector<std::string> words = joined(
        {"--embeddings", RK_TEST_GOLDEN "/arrays/c_order.npy", "--labels",
         RK_TEST_GOLDEN "/arrays/labels_int64.npy", "--protocol", "cub", "--json", in("r.json")},
        more);
    EXPECT_EQ(run_eval(words, said), 0);
    return nlohmann::json::parse(std::ifstream(in("r.json"))).at("metrics");
  };
  const std::string replaced = "--recall-at replaces the k of --protocol cub: 1, 2, 4, 8";
  std::string said;
  const nlohmann::json own = measured({}, &said);
  for (const char* key : {"recall_at_1", "recall_at_2", "recall_at_4", "recall_at_8"}) {
    EXPECT_TRUE(own.contains(key)) << key;
  }
  EXPECT_FALSE(own.contains("recall_at_10"));
  EXPECT_FALSE(holds(said, replaced));
  EXPECT_EQ(measured({"--recall-at", "1,2,4,8"}, &said), own);
  EXPECT_FALSE(holds(said, replaced));
  EXPECT_TRUE(measured({"--recall-at", "1,3"}, &said).contains("recall_at_3"));
  EXPECT_TRUE(holds(said, replaced));
}

// Cameras are looked at on both sides.
TEST_F(EvalCommand, AProtocolNamesTheFileWhoseCamerasItLacks) {
  EmbeddingSet set;
  set.dim = 2;
  set.embeddings = {1, 0, 0, 1, 1, 0, 0, 1};
  set.labels = {1, 2, 1, 2};
  write_embeddings(in("plain.h5"), set);
  set.cameras = {1, 1, 2, 2};
  write_embeddings(in("cameras.h5"), set);
  const auto said = [&](const std::string& protocol, const std::string& queries,
                        const std::string& gallery, int code) {
    std::string out;
    EXPECT_EQ(run_eval({"--protocol", protocol, "--embeddings", in(queries), "--gallery",
                        in(gallery), "--json", in("r.json"), "--force"},
                       &out),
              code)
        << out;
    return out;
  };
  const std::string lacks = ": --protocol veri-wild removes by cameras, of which the file holds ";
  const std::string has = ": --protocol inshop knows no cameras, and these would ";
  EXPECT_TRUE(holds(said("veri-wild", "plain.h5", "cameras.h5", 3), in("plain.h5") + lacks));
  EXPECT_TRUE(holds(said("veri-wild", "cameras.h5", "plain.h5", 3), in("plain.h5") + lacks));
  EXPECT_TRUE(holds(said("inshop", "plain.h5", "cameras.h5", 3), in("cameras.h5") + has));
  EXPECT_TRUE(holds(said("inshop", "cameras.h5", "plain.h5", 3), in("cameras.h5") + has));
  said("veri-wild", "cameras.h5", "cameras.h5", 0);
  said("inshop", "plain.h5", "plain.h5", 0);
  EXPECT_TRUE(holds(said("cub", "plain.h5", "plain.h5", 2),
                    "--protocol cub: searches among the rows themselves; leave --gallery out"));
}

TEST_F(EvalCommand, UndefinedValuesAreNull) {
  const std::string json = in("eval_null.json");
  ASSERT_EQ(run_eval({"--embeddings", RK_TEST_GOLDEN "/metrics/single.h5", "--json", json}), 0);
  const nlohmann::json result = nlohmann::json::parse(std::ifstream(json));
  EXPECT_TRUE(result.at("metrics").at("map").is_null());
}

// Wrong files must end the program with one line and exit code 3.
class EvalOfFiles : public EvalCommand {
 protected:
  std::string refused(const std::vector<std::string>& arguments) const {
    const Finished end =
        run_to_end(joined({RK_BIN "/eval", "-q", "--json", in("none.json")}, arguments),
                   folder_.path().string());
    EXPECT_EQ(end.code, 3) << end.err;
    EXPECT_EQ(end.out, "");
    EXPECT_EQ(std::count(end.err.begin(), end.err.end(), '\n'), 1) << end.err;
    EXPECT_FALSE(std::filesystem::exists(in("none.json")));
    return end.err;
  }
  std::string of(const std::string& name) const { return RK_TEST_GOLDEN "/arrays/" + name; }
};

TEST_F(EvalOfFiles, MeasuresArraysAndSaysWhatTheyAre) {
  const Finished end = run_to_end({RK_BIN "/eval", "--embeddings", of("fortran.npy"), "--labels",
                                   of("labels_names.npy"), "--normalize", "--json", in("out.json")},
                                  folder_.path().string());
  ASSERT_EQ(end.code, 0) << end.err;
  EXPECT_TRUE(holds(end.out,
                    "fortran.npy: 6 rows of 3 classes (npy float32 [6, 3] in Fortran "
                    "order, turned, normalised; labels: "));
  const nlohmann::json result = nlohmann::json::parse(std::ifstream(in("out.json")));
  EXPECT_EQ(result.at("dtype"), "float32");
  EXPECT_EQ(result.at("normalize"), true);
  EXPECT_EQ(result.at("metrics").at("num_queries"), 6);
}

// oneDNN splits this depth among three threads and more where it computes with AVX2: the question
// whether equal rows get equal bits must be put to the product as the passes run it.
TEST_F(EvalOfFiles, EqualRowsAreEqualOnEveryProcessorWithSeveralThreads) {
  constexpr int kRows = 600, kDepth = 1024;
  std::vector<float> rows;
  std::vector<std::int64_t> labels;
  CounterRandom random(random_seed(), 0, 0);
  for (int i = 0; i < kRows * kDepth; ++i) {
    rows.push_back(static_cast<float>(random.uniform(-1, 1)));
  }
  for (int i = 0; i < kRows; ++i) labels.push_back(i / 4);
  folder_.write("rows.npy", npy_rows(rows, kRows, kDepth));
  folder_.write("labels.npy", npy_labels(labels));
  for (const char* threads : {"1", "4"}) {
    const Finished end = run_to_end(
        {"/usr/bin/env", "ONEDNN_MAX_CPU_ISA=AVX2", RK_BIN "/eval", "--embeddings", in("rows.npy"),
         "--labels", in("labels.npy"), "--device", "cpu", "--threads", threads},
        folder_.path().string());
    ASSERT_EQ(end.code, 0) << end.err;
    EXPECT_TRUE(holds(end.out, "ties count against the query"));
    EXPECT_FALSE(holds(end.out, "up to rounding")) << threads << " threads: " << end.out;
  }
}

TEST_F(EvalOfFiles, NormalizingIsNotAdvisedTwice) {
  folder_.write("zeros.npy", npy_rows({1, 0, 0, 0, 0, 3, 0, 1, 2, 0, 1, 1}, 6, 2));
  std::vector<std::string> words = {RK_BIN "/eval", "--embeddings", in("zeros.npy"), "--labels",
                                    of("labels_int64.npy")};
  const Finished as_they_are = run_to_end(words, folder_.path().string());
  EXPECT_EQ(as_they_are.code, 0) << as_they_are.err;
  EXPECT_TRUE(holds(as_they_are.err, "cosine similarity wants 1 (--normalize)"));
  words.emplace_back("--normalize");
  const Finished normalized = run_to_end(words, folder_.path().string());
  EXPECT_EQ(normalized.code, 0) << normalized.err;
  EXPECT_TRUE(holds(normalized.err, "1 row of zeros alone (in float32), which have no direction"));
  EXPECT_FALSE(holds(normalized.err, "cosine similarity wants 1")) << normalized.err;
}

TEST_F(EvalOfFiles, WhatIsWrongIsOneLine) {
  const std::string good = of("c_order.npy"), labels = of("labels_int64.npy");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  folder_.write("nan.npy", npy_rows({1, 2, 3, nan, 4, nan}, 6, 1));
  folder_.write("empty.npy", npy_rows({}, 0, 3));
  folder_.write("wide.npy", npy_rows({1, 2, 3, 4}, 1, 4));
  folder_.write("one.csv", "1\n");
  folder_.write("page.npy", "<!DOCTYPE html><html><body>404</body></html>");
  folder_.write("other.npz", zip_of({{"word/document.xml", "<w/>"}}));
  folder_.write("names.csv", "a\na\nb\nb\nc\nc\n");
  EXPECT_TRUE(holds(refused({"--embeddings", in("nan.npy"), "--labels", labels}),
                    "nan.npy: holds not-a-number in rows 3, 5; embed those images again"));
  EXPECT_TRUE(holds(refused({"--embeddings", good, "--labels", in("one.csv")}),
                    "one.csv: 1 label for the 6 rows of"));
  EXPECT_TRUE(holds(refused({"--embeddings", good, "--labels", labels, "--gallery", in("wide.npy"),
                             "--gallery-labels", in("one.csv")}),
                    "wide.npy: rows of 4 numbers, but"));
  EXPECT_TRUE(holds(refused({"--embeddings", in("empty.npy"), "--labels", labels}), "is empty"));
  EXPECT_TRUE(holds(refused({"--embeddings", of("transposed.npy"), "--labels", labels}),
                    "the rows lie across; store them transposed (numpy: .T)"));
  EXPECT_TRUE(holds(refused({"--embeddings", of("objects.npy"), "--labels", labels}),
                    "objects.npy: holds pickled Python objects, and a pickle can run programs"));
  EXPECT_TRUE(holds(refused({"--embeddings", in("page.npy"), "--labels", labels}),
                    "page.npy: is a web page"));
  EXPECT_TRUE(holds(refused({"--embeddings", in("other.npz"), "--labels", labels}),
                    "holds no array of numpy's (but 'word/document.xml')"));
  EXPECT_TRUE(holds(refused({"--embeddings", good}), "no labels in it; give them by --labels"));
  EXPECT_TRUE(holds(refused({"--embeddings", good, "--labels", labels, "--gallery", good}),
                    "no labels in it; give them by --gallery-labels FILE"));
  EXPECT_TRUE(holds(refused({"--embeddings", good, "--labels", labels, "--gallery", labels,
                             "--gallery-labels", labels}),
                    "not floating-point numbers; give embeddings [N, D] (numpy: "
                    ".astype('float32')), and labels by --gallery-labels"));
  EXPECT_TRUE(holds(refused({"--embeddings", good, "--labels", labels, "--gallery", good,
                             "--gallery-labels", in("names.csv")}),
                    labels + ": its labels are numbers, but " + in("names.csv") + " names"));
  folder_.write("few.csv", "1\n1\n2\n2\n3\n3\n");
  folder_.write("more.csv", "1\n1\n2\n2\nunknown\n3\n");
  const std::string mixed = refused({"--embeddings", good, "--labels", in("few.csv"), "--gallery",
                                     good, "--gallery-labels", in("more.csv")});
  EXPECT_TRUE(holds(mixed,
                    "give names for both or numbers for both (labels of CSV that are all "
                    "digits are numbers; a letter before each makes them names)"));
}

// No program could open HDF5 under the ending of another format, so such names must be refused.
TEST_F(EvalOfFiles, EmbeddingsAreWrittenAsHdf5Alone) {
  const auto end = [&](const std::string& flag, const std::string& name) {
    return run_to_end(
        {RK_BIN "/eval", "-q", "--embeddings", RK_TEST_GOLDEN "/metrics/ties.h5", flag, in(name)},
        folder_.path().string());
  };
  for (const char* name : {"new.npy", "new.NPZ", "new.csv", "new.safetensors", "new.bin"}) {
    const Finished refused = end("--save-embeddings", name);
    EXPECT_EQ(refused.code, 2) << name;
    EXPECT_TRUE(holds(refused.err, "--save-embeddings " + in(name) +
                                       ": embeddings are written as HDF5; call the file new.h5"));
    EXPECT_FALSE(std::filesystem::exists(in(name)));
  }
  EXPECT_TRUE(holds(end("--save-neighbours", "n.npy").err, "neighbours are written as HDF5"));
  for (const char* name : {"new", "new.xyz", "new.dat", "new.HDF5"}) {
    EXPECT_EQ(end("--save-embeddings", name).code, 0) << name;
    EXPECT_TRUE(std::filesystem::exists(in(name))) << name;
  }
}

// A folder as output file must be refused before the work, not after it.
TEST_F(EvalOfFiles, AFolderIsNoFileToWriteTo) {
  std::filesystem::create_directory(folder_.path() / "results");
  const std::string results = in("results");
  const Finished end = run_to_end(
      {RK_BIN "/eval", "--embeddings", RK_TEST_GOLDEN "/metrics/ties.h5", "--json", results},
      folder_.path().string());
  EXPECT_EQ(end.code, 3);
  EXPECT_EQ(end.out, "");
  EXPECT_TRUE(holds(end.err, "error: " + results +
                                 ": cannot be written: it is a folder; give "
                                 "another --json"));
}

// Recalls must be in ascending order, whatever the order given; one that covers all candidates says
// nothing and must be noted once.
TEST_F(EvalOfFiles, RecallsAreInOrderAndOneOfAllCandidatesIsNoted) {
  const auto end = [&](const std::vector<std::string>& more) {
    const std::vector<std::string> words = joined(
        {RK_BIN "/eval", "--embeddings", of("c_order.npy"), "--labels", of("labels_int64.npy")},
        more);
    Finished done = run_to_end(words, folder_.path().string());
    EXPECT_EQ(done.code, 0) << done.err;
    return done;
  };
  const Finished twice = end({"--recall-at", "3,1,3"});
  const std::size_t one = twice.out.find("R@1 "), three = twice.out.find("R@3 ");
  EXPECT_LT(one, three) << twice.out;
  EXPECT_LT(three, twice.out.size()) << twice.out;
  EXPECT_EQ(twice.out.find("R@3 ", three + 1), std::string::npos) << twice.out;
  EXPECT_FALSE(holds(twice.err, "note: R@")) << twice.err;
  const std::string all =
      "a query has at most 5 candidates, so that whatever there is to find is found\n";
  EXPECT_TRUE(holds(end({"--recall-at", "1,4,5,6"}).err, "note: R@5, R@6: " + all));
  EXPECT_TRUE(holds(end({"--recall-at", "6", "--gallery", of("c_order.npy"), "--gallery-labels",
                         of("labels_int64.npy")})
                        .err,
                    "note: R@6: a query has at most 6 candidates"));
  // The JSON and the report say it, too.
  const std::string json = in("recalls.json");
  const std::string page = in("recalls.html");
  end({"--recall-at", "5", "--json", json, "--report", page});
  const std::string note = "R@5: " + all.substr(0, all.size() - 1);
  const std::string few = "there are only 3 classes to draw from";
  const nlohmann::json notes = nlohmann::json::parse(file_text(json)).at("notes");
  for (const std::string& text : {note, few}) {
    EXPECT_TRUE(holds(notes.dump(), "\"" + text));
    EXPECT_TRUE(holds(file_text(page), text));
  }
}

// Whoever follows the advice must get a file.
TEST_F(EvalOfFiles, NeighboursThatDoNotFitInMemoryAreSaid) {
  if (RK_SANITIZED) GTEST_SKIP() << "a sanitizer needs address space without a limit";
  constexpr int kRows = 12000;  // all their neighbours take 1.1 GiB
  std::vector<float> rows;
  std::vector<std::int64_t> labels;
  for (int i = 0; i < kRows; ++i) {
    rows.push_back(static_cast<float>(i % 100));
    labels.push_back(i % 3000);
  }
  folder_.write("e.npy", npy_rows(rows, kRows, 1));
  folder_.write("y.npy", npy_labels(labels));
  const auto end = [&](int topk) {
    return run_to_end(limited_to(977, {RK_BIN "/eval", "--threads", "1", "-q", "--embeddings",
                                       in("e.npy"), "--labels", in("y.npy"), "--topk",
                                       std::to_string(topk), "--save-neighbours", in("n.h5")}),
                      folder_.path().string());
  };
  const Finished much = end(1 << 20);
  EXPECT_EQ(much.code, 5) << much.err;
  EXPECT_TRUE(holds(much.err,
                    "--save-neighbours: out of memory for 11999 neighbours of 12000 rows; give a "
                    "smaller --topk"));
  EXPECT_FALSE(std::filesystem::exists(in("n.h5")));
  EXPECT_EQ(end(10).code, 0);
}

TEST_F(EvalOfFiles, NeighboursOfAGalleryAreItsRows) {
  folder_.write("q.npy", npy_rows({1, 0, 0, 1}, 2, 2));
  folder_.write("g.npy", npy_rows({0, 1, 0.5F, 0.5F, 1, 0}, 3, 2));
  folder_.write("q.csv", "1\n2\n");
  folder_.write("g.csv", "2\n3\n1\n");
  ASSERT_EQ(
      run_eval({"--embeddings", in("q.npy"), "--labels", in("q.csv"), "--gallery", in("g.npy"),
                "--gallery-labels", in("g.csv"), "--topk", "100", "--save-neighbours", in("n.h5")}),
      0);
  const Hdf5Reader file(in("n.h5"));
  EXPECT_EQ(file.info("/neighbours").dims, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(file.read<std::int64_t>("/neighbours"), (std::vector<std::int64_t>{2, 1, 0, 0, 1, 2}));
  EXPECT_EQ(file.read<float>("/scores"), (std::vector<float>{1, 0.5F, 0, 1, 0.5F, 0}));
  // Without a gallery each of the two queries has one candidate, and the file as many columns.
  ASSERT_EQ(run_eval({"--embeddings", in("q.npy"), "--labels", in("q.csv"), "--topk", "2",
                      "--save-neighbours", in("s.h5")}),
            0);
  const Hdf5Reader self(in("s.h5"));
  EXPECT_EQ(self.info("/neighbours").dims, (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(self.read<std::int64_t>("/neighbours"), (std::vector<std::int64_t>{1, 0}));
}

// Where the camera rule leaves a query fewer candidates than others, -1 and NaN fill the rest.
TEST_F(EvalOfFiles, NeighboursThatARowLacksAreMinusOne) {
  EmbeddingSet set;
  set.dim = 1;
  set.embeddings = {1, 2, 3};
  set.labels = {7, 7, 8};
  set.cameras = {1, 1, 1};
  write_embeddings(in("e.h5"), set);
  ASSERT_EQ(run_eval({"--embeddings", in("e.h5"), "--save-neighbours", in("n.h5")}), 0);
  const Hdf5Reader file(in("n.h5"));
  EXPECT_EQ(file.info("/neighbours").dims, (std::vector<std::int64_t>{3, 2}));
  EXPECT_EQ(file.read<std::int64_t>("/neighbours"),
            (std::vector<std::int64_t>{2, -1, 2, -1, 1, 0}));
  EXPECT_TRUE(std::isnan(file.read<float>("/scores")[1]));
}

TEST_F(EvalOfFiles, ASingleRowHasNoNeighbour) {
  ASSERT_EQ(run_eval({"--embeddings", RK_TEST_GOLDEN "/metrics/single.h5", "--save-neighbours",
                      in("n.h5")}),
            0);
  EXPECT_EQ(Hdf5Reader(in("n.h5")).read<std::int64_t>("/neighbours"),
            std::vector<std::int64_t>{-1});
}

}  // namespace
}  // namespace rk
