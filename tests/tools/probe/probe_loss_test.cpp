#include "tools/probe/probe_loss.h"
#include "losses/registry.h"
#include "tests/retrieval/npy_bytes.h"
#include "tests/support/made_up.h"
#include "tests/support/weights/torch_writer.h"
#include "tests/support/words.h"
#include "tests/tools/probe/probe_run.h"
#include "weights/atomic_file.h"
#include "weights/hdf5/file.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace rk {
namespace {

class ProbeLoss : public ProbeRun {
 protected:
  int probe(const std::vector<std::string>& arguments) { return run(arguments, make_probe_loss()); }

  // Writes the inputs that `data` has and omits all others. T: the type of whole numbers.
  template <class T = std::int64_t>
  void write(const std::string& name, const LossData<double>& data) const {
    Hdf5Writer file;
    const auto numbers = [&](const char* dataset, const std::vector<double>& values,
                             std::int64_t rows, std::int64_t columns) {
      if (!values.empty()) file.write<double>(dataset, {rows, columns}, values.data());
    };
    const auto ids = [&](const char* dataset, const std::vector<std::int64_t>& values) {
      if (values.empty()) return;
      const std::vector<T> stored(values.begin(), values.end());
      file.write<T>(dataset, {static_cast<std::int64_t>(values.size())}, stored.data());
    };
    numbers("/embeddings", data.embeddings, data.rows, data.dim);
    ids("/labels", data.labels);
    numbers("/memory_embeddings", data.memory_embeddings, data.memory, data.dim);
    ids("/memory_labels", data.memory_labels);
    ids("/identities", data.image_ids);
    ids("/memory_identities", data.memory_image_ids);
    numbers("/proxies", data.proxies, data.classes, data.dim);
    numbers("/scores", data.scores, data.rows, data.classes);
    if (!data.targets.empty()) {
      const std::vector<T> stored(data.targets.begin(), data.targets.end());
      file.write<T>("/targets", {data.rows, data.classes}, stored.data());
    }
    write_atomic(in(name), file.finish());
  }

  // The program computes in float, whose rounding a small temperature amplifies.
  static void expect_gradient(const std::vector<double>& got, const std::vector<double>& expected,
                              const std::string& what) {
    ASSERT_EQ(got.size(), expected.size()) << what;
    double largest = 0;
    for (const double value : expected) largest = std::max(largest, std::abs(value));
    EXPECT_GT(largest, 0) << what;
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_NEAR(got[i], expected[i], 1e-4 * largest) << what << ", element " << i;
    }
  }

  nlohmann::json json() const {
    std::ifstream file(in("out.json"));
    return nlohmann::json::parse(file);
  }
};

// Where rows are equal, differences are no gradient, which is no fault of the loss: --check must
// count such rows.
TEST_F(ProbeLoss, EqualRowsAreCountedWhereGradientsAreChecked) {
  LossData<double> data = made_up::data(LossKind::kEmbeddings, {.rows = 16, .dim = 6}, 1);
  for (const std::int64_t expected : {0, 2}) {
    if (expected > 0) {
      std::copy_n(data.embeddings.begin(), 6, data.embeddings.begin() + 4 * 6);
      std::copy_n(data.embeddings.begin(), 6, data.embeddings.begin() + 15 * 6);
    }
    write("in.h5", data);
    ASSERT_EQ(probe({"--loss", "fastap", "--in", in("in.h5"), "--json", in("out.json"), "--check",
                     "--force"}),
              0)
        << error_;
    EXPECT_EQ(json().at("check").at("equal_rows"), expected);
    EXPECT_EQ(holds(out_, "2 rows are equal to another"), expected == 2) << out_;
  }
}

// The authors' gradient of fastap is by design no derivative, which must be said where it deviates.
TEST_F(ProbeLoss, WhatTheAuthorsCodeDoesIsSaidWhereGradientsAreChecked) {
  write("in.h5", made_up::data(LossKind::kEmbeddings, {.rows = 16, .dim = 6}, 1));
  const std::string said = "compat=official: the authors' backward";
  for (const char* loss : {"fastap:compat=official", "fastap"}) {
    ASSERT_EQ(probe({"--loss", loss, "--in", in("in.h5"), "--check"}), 0) << error_;
    EXPECT_EQ(holds(out_, said), std::string(loss) != "fastap") << out_;
  }
}

// On a file with every input that a loss takes, probe must report the loss's own numbers and write
// its gradients, and the gradient must agree with differences in double.
TEST_F(ProbeLoss, EveryLossIsCheckedOnAllItTakes) {
  for (const LossEntry& entry : loss_registry()) {
    made_up::Wanted wanted{.rows = 16, .memory = takes_memory(entry.kind) ? 7 : 0, .dim = 6};
    // Of this seed no loss has a gradient of 0.
    const LossData<double> data = made_up::data(entry.kind, wanted, 3);
    write("in.h5", data);
    ASSERT_EQ(probe({"--loss", entry.name, "--in", in("in.h5"), "--out", in("out.h5"), "--json",
                     in("out.json"), "--check"}),
              0)
        << entry.name << ": " << error_;
    const nlohmann::json result = json();
    const auto loss = make_loss<double>(entry.name);
    loss->allocate(Context(1), data.shape());
    std::vector<double> grad(static_cast<std::size_t>(data.grad_elements(entry.kind)));
    std::vector<double> grad_proxies(static_cast<std::size_t>(data.proxy_elements(entry.kind)));
    LossOutput<double> expected;
    expected.grad = grad.data();
    expected.grad_proxies = grad_proxies.data();
    loss->run(Context(1), data.input(), expected);
    EXPECT_NEAR(result.at("loss").get<double>(), expected.loss, 1e-4 * std::abs(expected.loss))
        << entry.name;
    EXPECT_EQ(result.at("valid_queries"), expected.valid_queries) << entry.name;
    const Hdf5Reader file(in("out.h5"));
    EXPECT_EQ(file.read<double>("/loss").at(0), result.at("loss"));
    EXPECT_EQ(file.read<std::int64_t>("/valid_queries").at(0), expected.valid_queries);
    expect_gradient(file.read<double>("/grad"), grad, entry.name);
    EXPECT_EQ(file.has("/grad_proxies"), entry.kind == LossKind::kProxies) << entry.name;
    if (entry.kind == LossKind::kProxies) {
      expect_gradient(file.read<double>("/grad_proxies"), grad_proxies, entry.name);
    }
    if (entry.differentiable) {
      // Steps of 1e-6 with temperatures of 0.01; a kink within a step would give 1e-2.
      EXPECT_LT(result.at("check").at("median").get<double>(), 1e-4) << entry.name;
    } else {
      EXPECT_TRUE(result.at("check").is_null()) << entry.name;
    }
  }
}

TEST_F(ProbeLoss, MemoryAndProxiesChangeWhatComesOut) {
  LossData<double> data = made_up::data(LossKind::kEmbeddings, {.rows = 10, .memory = 6}, 4);
  write("with.h5", data);
  data.memory_embeddings.clear();
  data.memory_labels.clear();
  write("without.h5", data);
  ASSERT_EQ(probe({"--loss", "smooth_ap", "--in", in("with.h5"), "--json", in("out.json")}), 0);
  const double with = json().at("loss");
  ASSERT_EQ(probe({"--loss", "smooth_ap", "--in", in("without.h5"), "--json", in("out.json")}), 0);
  EXPECT_NE(json().at("loss").get<double>(), with);
}

// The arrays that `data` has, under the names of the HDF5 file, as numpy.savez writes them.
// `classes`: names of one letter, by ascending label, which take the place of labels.
std::string npz(const LossData<double>& data, const std::string& classes = "") {
  ArchiveMembers members;
  const auto numbers = [&](const char* name, const std::vector<double>& values, std::int64_t rows,
                           std::int64_t columns) {
    if (values.empty()) return;
    const std::vector<float> floats(values.begin(), values.end());
    members.emplace_back(
        std::string(name) + ".npy",
        npy_rows(floats, static_cast<std::size_t>(rows), static_cast<std::size_t>(columns)));
  };
  const auto ids = [&](const char* name, const std::vector<std::int64_t>& values) {
    if (values.empty()) return;
    if (classes.empty() || !std::string(name).ends_with("labels")) {
      members.emplace_back(std::string(name) + ".npy", npy_labels(values));
      return;
    }
    const std::int64_t first = std::ranges::min(data.labels);
    std::string names;
    for (const std::int64_t label : values) {
      names += classes.at(static_cast<std::size_t>(label - first));
    }
    members.emplace_back(std::string(name) + ".npy",
                         npy_bytes(npy_header("|S1", fmt::format("({},)", values.size())), names));
  };
  numbers("embeddings", data.embeddings, data.rows, data.dim);
  ids("labels", data.labels);
  ids("identities", data.image_ids);
  numbers("memory_embeddings", data.memory_embeddings, data.memory, data.dim);
  ids("memory_labels", data.memory_labels);
  ids("memory_identities", data.memory_image_ids);
  numbers("proxies", data.proxies, data.classes, data.dim);
  numbers("scores", data.scores, data.rows, data.classes);
  if (!data.targets.empty()) {
    members.emplace_back(
        "targets.npy",
        npy_bytes(npy_header("|b1", fmt::format("({}, {})", data.rows, data.classes)),
                  raw_bytes(data.targets)));
  }
  return zip_of(members);
}

// Rows of earlier batches are said to count, or that they do not; nothing is left out in silence.
TEST_F(ProbeLoss, WhatBecomesOfTheMemoryIsSaid) {
  LossData<double> data = made_up::data(LossKind::kEmbeddings, {.rows = 10, .memory = 6}, 4);
  data.proxies.assign(data.embeddings.begin(), data.embeddings.begin() + 5 * data.dim);
  data.classes = 5;
  std::ranges::transform(data.labels, data.labels.begin(),
                         [](std::int64_t label) { return std::abs(label) % 5; });
  const auto write_both = [&] {
    write("in.h5", data);
    write_atomic(in("in.npz"), npz(data));
  };
  write_both();
  for (const char* name : {"in.h5", "in.npz"}) {
    ASSERT_EQ(probe({"--loss", "fastap", "--in", in(name), "--json", in("out.json"), "--force"}), 0)
        << error_;
    EXPECT_TRUE(holds(out_, "\nmemory         6 rows to rank against\n"));
    EXPECT_EQ(json().at("memory_rows"), 6);
    ASSERT_EQ(probe({"--loss", "nsl", "--in", in(name), "--json", in("out.json"), "--force"}), 0)
        << error_;
    EXPECT_TRUE(holds(error_, "memory_embeddings"));
    EXPECT_TRUE(
        holds(error_, ": not read; a loss with proxies compares the batch with them alone"));
    EXPECT_EQ(json().at("memory_rows"), 0);
  }
  const auto refused = [&](const std::string& array, const std::string& why) {
    write_both();
    for (const char* name : {"in.h5", "in.npz"}) {
      EXPECT_EQ(probe({"--loss", "fastap", "--in", in(name)}), 3);
      EXPECT_TRUE(holds(error_, array));
      EXPECT_TRUE(holds(error_, ": " + why + "\n"));
    }
  };
  const std::vector<double> rows = std::exchange(data.memory_embeddings, {});
  refused("memory_labels",
          "is of a memory that is not there; add memory_embeddings or leave it out");
  data.memory_embeddings = rows;
  data.memory_image_ids = {0, 1, 2, 3, 4, 5};
  refused("memory_identities",
          "numbers the pictures of the memory, and nothing numbers those of the batch; add "
          "identities or leave both out");
}

// The same numbers in numpy's files must give the same bits as in HDF5, whatever a loss reads.
TEST_F(ProbeLoss, NumpysArraysAreReadAsHdf5Is) {
  const auto loss_and_gradient = [&](const std::string& loss,
                                     const std::vector<std::string>& more) {
    const std::vector<std::string> words = joined({"--loss", loss, "--out", in("out.h5"), "--check",
                                                   "--threads", "1", "--force", "--device", "cpu"},
                                                  more);
    EXPECT_EQ(probe(words), 0) << error_;
    const Hdf5Reader file(in("out.h5"));
    std::vector<double> out = file.read<double>("/grad");
    out.push_back(file.read<double>("/loss").at(0));
    return out;
  };
  for (const char* loss : {"fastap", "nsl", "rambo_map"}) {
    const LossKind kind = parse_loss(loss).entry->kind;
    const LossData<double> data = made_up::data(
        kind, {.rows = 16, .memory = takes_memory(kind) ? 7 : 0, .dim = 6, .image_ids = true}, 1);
    write("in.h5", data);
    folder_.write("in.npz", npz(data));
    const std::vector<double> expected = loss_and_gradient(loss, {"--in", in("in.h5")});
    EXPECT_EQ(loss_and_gradient(loss, {"--in", in("in.npz")}), expected) << loss;
    if (kind == LossKind::kScores) continue;
    EXPECT_TRUE(holds(out_, "in.npz: npz, float32; labels: 'labels', int64\n"));
    folder_.write("y.npy", npy_labels(data.labels));
    LossData<double> mislabelled = data;
    std::ranges::fill(mislabelled.labels, data.labels.front());
    write("in.h5", mislabelled);
    folder_.write("in.npz", npz(mislabelled));
    for (const char* rows : {"in.h5", "in.npz:embeddings"}) {
      EXPECT_EQ(loss_and_gradient(loss, {"--in", in(rows), "--labels", in("y.npy")}), expected)
          << loss << ", " << rows;
    }
  }
  // Names are matched between the batch and the memory, in whatever order they come.
  LossData<double> data =
      made_up::data(LossKind::kEmbeddings, {.rows = 12, .memory = 9, .dim = 6}, 2);
  std::ranges::reverse(data.memory_labels);
  write("in.h5", data);
  folder_.write("names.npz", npz(data, "xbmkqzjw"));
  EXPECT_EQ(loss_and_gradient("smooth_ap", {"--in", in("names.npz")}),
            loss_and_gradient("smooth_ap", {"--in", in("in.h5")}));
  // A single array with its labels in a table.
  data = made_up::data(LossKind::kEmbeddings, {.rows = 12, .dim = 6}, 2);
  write("in.h5", data);
  folder_.write("e.npy", npy_rows({data.embeddings.begin(), data.embeddings.end()}, 12, 6));
  std::string table = "file,species\n";
  for (const std::int64_t label : data.labels) table += fmt::format("a.jpg,s{}\n", label);
  folder_.write("y.csv", table);
  EXPECT_EQ(loss_and_gradient("smooth_ap", {"--in", in("e.npy"), "--labels", in("y.csv:species")}),
            loss_and_gradient("smooth_ap", {"--in", in("in.h5")}));
}

// 0 would look like the best of losses.
TEST_F(ProbeLoss, RowsWithNothingToFindAreSaid) {
  LossData<double> data = made_up::data(LossKind::kEmbeddings, {.rows = 12, .dim = 6}, 1);
  const std::string said =
      "no row has both another of its class and one of another class, so that the loss is 0";
  write("in.h5", data);
  EXPECT_EQ(probe({"--loss", "smooth_ap", "--in", in("in.h5")}), 0);
  EXPECT_FALSE(holds(error_, said));
  std::iota(data.labels.begin(), data.labels.end(), 0);
  write("in.h5", data);
  EXPECT_EQ(probe({"--loss", "smooth_ap", "--in", in("in.h5")}), 0);
  EXPECT_TRUE(holds(error_, said));
  // Without negatives some losses have nothing to compare either.
  std::ranges::fill(data.labels, 5);
  write("in.h5", data);
  EXPECT_EQ(probe({"--loss", "triplet_bh", "--in", in("in.h5")}), 0);
  EXPECT_TRUE(holds(error_, said));
}

// numpy and PyTorch make floating-point numbers of whole ones, and pandas names.
TEST_F(ProbeLoss, WholeNumbersMayBeFloatingPointAndLabelsNames) {
  const auto loss_and_gradient = [&](const std::string& loss, const std::string& name,
                                     const std::string& labels = "") {
    std::vector<std::string> words = {"--loss", loss,         "--in",   in(name),
                                      "--out",  in("out.h5"), "--force"};
    if (!labels.empty()) words.insert(words.end(), {"--labels", in(labels)});
    EXPECT_EQ(probe(words), 0) << error_;
    const Hdf5Reader file(in("out.h5"));
    std::vector<double> out = file.read<double>("/grad");
    out.push_back(file.read<double>("/loss").at(0));
    return out;
  };
  LossData<double> data = made_up::data(LossKind::kEmbeddings,
                                        {.rows = 12, .memory = 5, .dim = 6, .image_ids = true}, 1);
  write("in.h5", data);
  write<double>("floats.h5", data);
  EXPECT_EQ(loss_and_gradient("fastap", "floats.h5"), loss_and_gradient("fastap", "in.h5"));
  data = made_up::data(LossKind::kEmbeddings, {.rows = 12, .dim = 6}, 1);
  write("in.h5", data);
  Hdf5Writer named;
  named.write<double>("/embeddings", {data.rows, data.dim}, data.embeddings.data());
  std::vector<std::string> names;
  for (const std::int64_t label : data.labels) names.push_back(fmt::format("class {}", label));
  named.write_text("/labels", names);
  write_atomic(in("names.h5"), named.finish());
  EXPECT_EQ(loss_and_gradient("fastap", "names.h5", "names.h5"),
            loss_and_gradient("fastap", "in.h5"));
  EXPECT_EQ(probe({"--loss", "fastap", "--in", in("names.h5"), "--device", "cpu"}), 3);
  EXPECT_EQ(error_, "error: " + in("names.h5") +
                        ": /labels does not hold integers but names; with --labels " +
                        in("names.h5") + " they are taken\n");

  data = made_up::data(LossKind::kScores, {.rows = 6}, 4);
  write("in.h5", data);
  write<double>("floats.h5", data);
  const std::vector<double> expected = loss_and_gradient("rambo_map", "in.h5");
  EXPECT_EQ(loss_and_gradient("rambo_map", "floats.h5"), expected);
  // The scores, too, may have another name.
  Hdf5Writer apart;
  apart.write<double>("/mine", {data.rows, data.classes}, data.scores.data());
  const std::vector<std::int64_t> wanted(data.targets.begin(), data.targets.end());
  apart.write<std::int64_t>("/targets", {data.rows, data.classes}, wanted.data());
  write_atomic(in("apart.h5"), apart.finish());
  EXPECT_EQ(loss_and_gradient("rambo_map", "apart.h5:mine"), expected);
  EXPECT_EQ(probe({"--loss", "rambo_map", "--in", in("apart.h5:none"), "--device", "cpu"}), 3);
  EXPECT_EQ(error_,
            "error: " + in("apart.h5") + ": holds no /none; add it (it holds /mine, /targets)\n");
  const auto rows = static_cast<std::size_t>(data.rows);
  const auto classes = static_cast<std::size_t>(data.classes);
  const auto arrays = [&](float first) {
    std::vector<float> targets(data.targets.begin(), data.targets.end());
    if (first > 0) targets[0] = first;
    folder_.write(
        "in.npz",
        zip_of({{"scores.npy", npy_rows({data.scores.begin(), data.scores.end()}, rows, classes)},
                {"targets.npy", npy_rows(targets, rows, classes)}}));
  };
  arrays(0);
  EXPECT_EQ(loss_and_gradient("rambo_map", "in.npz"), expected);
  EXPECT_EQ(loss_and_gradient("rambo_map", "in.npz:scores"), expected);
  EXPECT_EQ(probe({"--loss", "rambo_map", "--in", in("in.npz:none"), "--device", "cpu"}), 3);
  arrays(0.5F);
  EXPECT_EQ(probe({"--loss", "rambo_map", "--in", in("in.npz"), "--device", "cpu"}), 3);
  EXPECT_EQ(error_, "error: " + in("in.npz") +
                        ": 'targets': element 0 is 0.5, no whole number; give integers, or names "
                        "if they are labels\n");
}

TEST_F(ProbeLoss, ArraysThatDoNotFitAreOneLine) {
  const auto refused = [&](const char* loss, const std::vector<std::string>& more, int code,
                           const std::string& line) {
    EXPECT_EQ(probe(joined({"--loss", loss, "--out", in("none.h5"), "--device", "cpu"}, more)),
              code)
        << line;
    EXPECT_EQ(error_, "error: " + line + "\n");
    EXPECT_FALSE(std::filesystem::exists(in("none.h5"))) << line;
  };
  const LossData<double> data =
      made_up::data(LossKind::kEmbeddings, {.rows = 6, .memory = 3, .dim = 4}, 4);
  LossData<double> alone = data;
  alone.memory_embeddings.clear();
  alone.memory_labels.clear();
  const std::string e = in("e.npy"), npz_file = in("in.npz");
  folder_.write("e.npy", npy_rows({data.embeddings.begin(), data.embeddings.end()}, 6, 4));
  folder_.write("y.npy", npy_labels(data.labels));
  refused("fastap", {"--in", e}, 3,
          e + ": no labels in it; give them by --labels FILE (.npy, .npz, CSV, ...), one a row");
  refused("nsl", {"--in", e, "--labels", in("y.npy")}, 3,
          e + ": is a single array, and this loss also reads proxies; give .npz, safetensors or "
              "HDF5 with all it reads");
  refused(
      "rambo_map", {"--in", e, "--labels", in("y.npy")}, 2,
      "--labels " + in("y.npy") + ": rambo_map reads scores and targets, no labels; leave it out");
  EXPECT_EQ(probe({"--loss", "fastap", "--in", e, "--labels", in("y.npy"), "--out", in("y.npy"),
                   "--force"}),
            2);
  EXPECT_TRUE(holds(error_, "--out " + in("y.npy") + ": is the file that is read"));
  folder_.write("in.npz", npz(alone));
  refused("nsl", {"--in", npz_file}, 3,
          npz_file +
              ": holds no proxies; add it (it holds 'embeddings' (float32 [6, 4]), 'labels' "
              "(int64 [6]))");
  folder_.write("in.npz", npz(alone, "abcdefgh"));
  refused("nsl", {"--in", npz_file}, 3,
          npz_file + ": labels: holds names, but proxies go by number; give numbers");
  LossData<double> broken = data;
  broken.memory_labels.clear();
  folder_.write("in.npz", npz(broken));
  refused("fastap", {"--in", npz_file}, 3,
          npz_file +
              ": holds no memory_labels; add it (it holds 'embeddings' (float32 [6, 4]), "
              "'labels' (int64 [6]), 'memory_embeddings' (float32 [3, 4]))");
  folder_.write("in.npz", npz(data));
  folder_.write("names.csv", "a\nb\na\nb\na\nb\n");
  refused("fastap", {"--in", npz_file, "--labels", in("names.csv")}, 3,
          npz_file + ": 'memory_labels': holds numbers, but labels are names; give names");
  write("in.h5", data);
  refused("fastap", {"--in", in("in.h5"), "--labels", in("names.csv")}, 3,
          in("names.csv") + ": holds names, but /memory_labels go by number; give numbers");
  broken = made_up::data(LossKind::kScores, {.rows = 6}, 4);
  broken.targets[3] = 7;
  folder_.write("in.npz", npz(broken));
  refused("rambo_apc", {"--in", npz_file}, 3,
          npz_file + ": 'targets' holds 7; give 1 for what belongs to a class, 0 for the rest");
  write("in.h5", broken);
  refused("rambo_apc", {"--in", in("in.h5")}, 3,
          in("in.h5") + ": /targets holds 7; give 1 for what belongs to a class, 0 for the rest");
  refused("rambo_apc", {"--in", in("in.h5"), "--normalize"}, 2,
          "--normalize: rambo_apc reads scores and targets, no embeddings; leave it out");
}

TEST_F(ProbeLoss, SaysWhichFlagIsMissing) {
  EXPECT_EQ(probe({"--loss", "smooth_ap", "--device", "cpu"}), 2);
  EXPECT_EQ(error_, "error: --loss smooth_ap: --in is missing\n");
  EXPECT_EQ(probe({"--in", in("in.h5"), "--device", "cpu"}), 2);
  EXPECT_EQ(error_, "error: --in " + in("in.h5") + ": --loss is missing\n");
  EXPECT_EQ(probe({"--device", "cpu"}), 2);
  EXPECT_TRUE(error_.starts_with("error: give --loss NAME --in FILE for a loss, --image FILE"));
}

TEST_F(ProbeLoss, SaysWhatAFileLacks) {
  const LossData<double> plain = made_up::data(LossKind::kEmbeddings, {.rows = 6}, 4);
  write("plain.h5", plain);
  const auto complaint = [&](const char* loss, const std::string& file) {
    // --device cpu, so that the program mentions no GPU that it could have used.
    EXPECT_EQ(probe({"--loss", loss, "--in", in(file), "--out", in("none.h5"), "--device", "cpu"}),
              3)
        << loss;
    EXPECT_FALSE(std::filesystem::exists(in("none.h5"))) << loss;
    return error_;
  };
  EXPECT_EQ(
      complaint("nsl", "plain.h5"),
      "error: " + in("plain.h5") + ": holds no /proxies; add it (it holds /embeddings, /labels)\n");
  EXPECT_EQ(
      complaint("rambo_map", "plain.h5"),
      "error: " + in("plain.h5") + ": holds no /scores; add it (it holds /embeddings, /labels)\n");

  Hdf5Writer nothing;
  nothing.write<double>("/embeddings", {0, 4}, nullptr);
  nothing.write<std::int64_t>("/labels", {0}, nullptr);
  write_atomic(in("empty.h5"), nothing.finish());
  EXPECT_EQ(complaint("fastap", "empty.h5"),
            "error: " + in("empty.h5") +
                ": /embeddings [0, 4] is no matrix of numbers [rows, columns]; write it so\n");
  LossData<double> broken = made_up::data(LossKind::kEmbeddings, {.rows = 6, .memory = 3}, 4);
  broken.memory_labels.clear();
  write("unlabelled.h5", broken);
  EXPECT_EQ(complaint("fastap", "unlabelled.h5"),
            "error: " + in("unlabelled.h5") +
                ": holds no /memory_labels; add it (it holds "
                "/embeddings, /labels, /memory_embeddings)\n");
  broken = made_up::data(LossKind::kScores, {.rows = 6}, 4);
  broken.targets.clear();
  write("untargeted.h5", broken);
  EXPECT_EQ(complaint("rambo_apc", "untargeted.h5"),
            "error: " + in("untargeted.h5") + ": holds no /targets; add it (it holds /scores)\n");
  broken = made_up::data(LossKind::kEmbeddings, {.rows = 6, .memory = 3}, 4);
  broken.memory_embeddings[7] = std::nan("");
  write("nan.h5", broken);
  EXPECT_TRUE(holds(complaint("fastap", "nan.h5"), ": memory_embeddings: row 1 holds NaN"))
      << error_;
  // An image with two labels would be its own negative.
  broken = made_up::data(LossKind::kEmbeddings, {.rows = 6}, 4);
  broken.labels = {0, 0, 1, 1, 2, 2};
  broken.image_ids = {0, 1, 2, 1, 4, 5};
  write("twice.h5", broken);
  EXPECT_TRUE(holds(complaint("fastap", "twice.h5"),
                    "/identities: row 3 shows image 1 with label 1, another row with label 0"))
      << error_;
  broken.image_ids = {0, 1, 2, -1, 4, 5};
  write("negative.h5", broken);
  EXPECT_TRUE(holds(complaint("fastap", "negative.h5"), "/identities holds -1 in row 3")) << error_;
}

TEST_F(ProbeLoss, HelpTellsParametersPaperAndInputs) {
  for (const LossEntry& entry : loss_registry()) {
    ASSERT_EQ(probe({"--loss", entry.name, "--help"}), 0) << error_;
    EXPECT_TRUE(holds(out_, entry.paper)) << entry.name;
    EXPECT_TRUE(holds(out_, entry.summary)) << entry.name;
    for (const LossParameter& parameter : entry.parameters) {
      EXPECT_TRUE(holds(out_, parameter.meaning)) << entry.name;
      EXPECT_TRUE(holds(out_, "default " + parameter.fallback)) << entry.name;
    }
    EXPECT_EQ(out_.find("/memory_embeddings") != std::string::npos, takes_memory(entry.kind))
        << entry.name;
    EXPECT_EQ(out_.find("/proxies [C, D]") != std::string::npos, entry.kind == LossKind::kProxies)
        << entry.name;
  }
}

}  // namespace
}  // namespace rk
