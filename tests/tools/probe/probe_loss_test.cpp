#include "tools/probe/probe_loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "losses/registry.h"
#include "tests/support/made_up.h"
#include "tests/tools/probe/probe_run.h"
#include "weights/atomic_file.h"
#include "weights/hdf5/file.h"

namespace rk {
namespace {

class ProbeLoss : public ProbeRun {
 protected:
  int probe(const std::vector<std::string>& arguments) { return run(arguments, make_probe_loss()); }

  // Writes the inputs that `data` has and omits all others.
  void write(const std::string& name, const LossData<double>& data) const {
    Hdf5Writer file;
    const auto numbers = [&](const char* dataset, const std::vector<double>& values,
                             std::int64_t rows, std::int64_t columns) {
      if (!values.empty()) file.write<double>(dataset, {rows, columns}, values.data());
    };
    const auto ids = [&](const char* dataset, const std::vector<std::int64_t>& values) {
      if (values.empty()) return;
      file.write<std::int64_t>(dataset, {static_cast<std::int64_t>(values.size())}, values.data());
    };
    numbers("/embeddings", data.embeddings, data.rows, data.dim);
    ids("/labels", data.labels);
    numbers("/memory_embeddings", data.memory_embeddings, data.memory, data.dim);
    ids("/memory_labels", data.memory_labels);
    ids("/identities", data.identities);
    numbers("/proxies", data.proxies, data.classes, data.dim);
    numbers("/scores", data.scores, data.rows, data.classes);
    if (!data.targets.empty()) {
      file.write<std::uint8_t>("/targets", {data.rows, data.classes}, data.targets.data());
    }
    write_atomic(path(name), file.finish());
  }

  nlohmann::json json() const {
    std::ifstream file(path("out.json"));
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
    ASSERT_EQ(probe({"--loss", "fastap", "--in", path("in.h5"), "--json", path("out.json"),
                     "--check", "--force"}),
              0)
        << error_;
    EXPECT_EQ(json().at("check").at("equal_rows"), expected);
    EXPECT_EQ(holds(out_, "2 rows are equal to another"), expected == 2) << out_;
  }
}

// On a file with every input that a loss takes, probe must report the loss's own numbers, and the
// gradient must agree with differences in double.
TEST_F(ProbeLoss, EveryLossIsCheckedOnAllItTakes) {
  for (const LossEntry& entry : loss_registry()) {
    made_up::Wanted wanted{.rows = 16, .memory = takes_memory(entry.kind) ? 7 : 0, .dim = 6};
    const LossData<double> data = made_up::data(entry.kind, wanted, 1);
    write("in.h5", data);
    ASSERT_EQ(probe({"--loss", entry.name, "--in", path("in.h5"), "--out", path("out.h5"), "--json",
                     path("out.json"), "--check"}),
              0)
        << entry.name << ": " << error_;
    const nlohmann::json result = json();
    const auto loss = make_loss<double>(entry.name);
    loss->plan(Context(1), data.shape());
    std::vector<double> grad(static_cast<std::size_t>(data.grad_elements(entry.kind)));
    std::vector<double> grad_proxies(static_cast<std::size_t>(data.proxy_elements(entry.kind)));
    LossOutput<double> expected;
    expected.grad = grad.data();
    expected.grad_proxies = grad_proxies.data();
    loss->run(Context(1), data.input(), expected);
    EXPECT_NEAR(result.at("loss").get<double>(), expected.loss, 1e-4 * std::abs(expected.loss))
        << entry.name;
    EXPECT_EQ(result.at("valid_queries"), expected.valid_queries) << entry.name;
    const Hdf5Reader file(path("out.h5"));
    EXPECT_EQ(file.read<double>("/loss").at(0), result.at("loss"));
    EXPECT_EQ(file.read<std::int64_t>("/valid_queries").at(0), expected.valid_queries);
    EXPECT_EQ(file.info("/grad").elements(), data.grad_elements(entry.kind)) << entry.name;
    EXPECT_EQ(file.has("/grad_proxies"), entry.kind == LossKind::kProxies) << entry.name;
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
  ASSERT_EQ(probe({"--loss", "smooth_ap", "--in", path("with.h5"), "--json", path("out.json")}), 0);
  const double with = json().at("loss");
  ASSERT_EQ(probe({"--loss", "smooth_ap", "--in", path("without.h5"), "--json", path("out.json")}),
            0);
  EXPECT_NE(json().at("loss").get<double>(), with);
}

TEST_F(ProbeLoss, SaysWhatAFileLacks) {
  const LossData<double> plain = made_up::data(LossKind::kEmbeddings, {.rows = 6}, 4);
  write("plain.h5", plain);
  const auto complaint = [&](const char* loss, const std::string& file) {
    // --device cpu, so that the program mentions no GPU that it could have used.
    EXPECT_EQ(
        probe({"--loss", loss, "--in", path(file), "--out", path("none.h5"), "--device", "cpu"}), 3)
        << loss;
    EXPECT_FALSE(std::filesystem::exists(path("none.h5"))) << loss;
    return error_;
  };
  EXPECT_EQ(complaint("nsl", "plain.h5"),
            "error: " + path("plain.h5") +
                ": holds no /proxies; add it (it holds /embeddings, /labels)\n");
  EXPECT_EQ(complaint("rambo_map", "plain.h5"),
            "error: " + path("plain.h5") +
                ": holds no /scores; add it (it holds /embeddings, /labels)\n");

  LossData<double> broken = made_up::data(LossKind::kEmbeddings, {.rows = 6, .memory = 3}, 4);
  broken.memory_labels.clear();
  write("unlabelled.h5", broken);
  EXPECT_EQ(complaint("fastap", "unlabelled.h5"),
            "error: " + path("unlabelled.h5") +
                ": holds no /memory_labels; add it (it holds "
                "/embeddings, /labels, /memory_embeddings)\n");
  broken = made_up::data(LossKind::kScores, {.rows = 6}, 4);
  broken.targets.clear();
  write("untargeted.h5", broken);
  EXPECT_EQ(complaint("rambo_apc", "untargeted.h5"),
            "error: " + path("untargeted.h5") + ": holds no /targets; add it (it holds /scores)\n");
  broken = made_up::data(LossKind::kEmbeddings, {.rows = 6, .memory = 3}, 4);
  broken.memory_embeddings[7] = std::nan("");
  write("nan.h5", broken);
  EXPECT_NE(complaint("fastap", "nan.h5").find(": memory_embeddings: row 1 holds NaN"),
            std::string::npos)
      << error_;
  // An image with two labels would be its own negative.
  broken = made_up::data(LossKind::kEmbeddings, {.rows = 6}, 4);
  broken.labels = {0, 0, 1, 1, 2, 2};
  broken.identities = {0, 1, 2, 1, 4, 5};
  write("twice.h5", broken);
  EXPECT_NE(complaint("fastap", "twice.h5")
                .find("/identities: row 3 shows image 1 with label 1, another row with label 0"),
            std::string::npos)
      << error_;
  broken.identities = {0, 1, 2, -1, 4, 5};
  write("negative.h5", broken);
  EXPECT_NE(complaint("fastap", "negative.h5").find("/identities holds -1 in row 3"),
            std::string::npos)
      << error_;
}

TEST_F(ProbeLoss, HelpTellsParametersPaperAndInputs) {
  for (const LossEntry& entry : loss_registry()) {
    ASSERT_EQ(probe({"--loss", entry.name, "--help"}), 0) << error_;
    EXPECT_NE(out_.find(entry.paper), std::string::npos) << entry.name;
    EXPECT_NE(out_.find(entry.summary), std::string::npos) << entry.name;
    for (const LossParameter& parameter : entry.parameters) {
      EXPECT_NE(out_.find(parameter.meaning), std::string::npos) << entry.name;
      EXPECT_NE(out_.find("default " + parameter.fallback), std::string::npos) << entry.name;
    }
    EXPECT_EQ(out_.find("/memory_embeddings") != std::string::npos, takes_memory(entry.kind))
        << entry.name;
    EXPECT_EQ(out_.find("/proxies [C, D]") != std::string::npos, entry.kind == LossKind::kProxies)
        << entry.name;
  }
}

}  // namespace
}  // namespace rk
