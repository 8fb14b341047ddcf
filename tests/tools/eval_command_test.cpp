#include "tools/eval_command.h"

#include "retrieval/embeddings_file.h"
#include "tests/data/temporary_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>

namespace rk {
namespace {

int run_eval(std::vector<std::string> arguments) {
  std::vector<const char*> argv{"eval"};
  for (const std::string& a : arguments) argv.push_back(a.c_str());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int code = run_program(static_cast<int>(argv.size()), argv.data(), "", make_eval());
  testing::internal::GetCapturedStdout();
  testing::internal::GetCapturedStderr();
  return code;
}

const std::string kGoldens = RK_TEST_GOLDEN "/metrics/";

class EvalCommand : public testing::Test {
 protected:
  std::string in(const std::string& name) const { return (folder_.path() / name).string(); }

  const TemporaryFolder folder_;
};

TEST_F(EvalCommand, WritesTheMetricsAsJson) {
  const std::string json = in("eval_command.json");
  ASSERT_EQ(run_eval({"--embeddings", kGoldens + "collapsed.h5", "--per-query", "--json", json}),
            0);
  const nlohmann::json result = nlohmann::json::parse(std::ifstream(json));
  const nlohmann::json& metrics = result.at("metrics");
  EXPECT_EQ(metrics.at("recall_at_1"), 0.0);  // a collapsed embedding must not look good
  EXPECT_EQ(metrics.at("roc_auc"), 0.5);
  EXPECT_EQ(metrics.at("per_query").at("ap").size(), metrics.at("num_queries"));
}

TEST_F(EvalCommand, UndefinedValuesAreNull) {
  const std::string json = in("eval_null.json");
  ASSERT_EQ(run_eval({"--embeddings", kGoldens + "single.h5", "--json", json}), 0);
  const nlohmann::json result = nlohmann::json::parse(std::ifstream(json));
  EXPECT_TRUE(result.at("metrics").at("map").is_null());
}

TEST_F(EvalCommand, BadFilesEndWithThreeAndLeaveNoJson) {
  const std::string json = in("eval_bad.json");
  for (const char* name :
       {"nan", "inf", "labels_short", "string_labels", "empty", "text", "missing"}) {
    EXPECT_EQ(run_eval({"--embeddings", kGoldens + "bad/" + name + ".h5", "--json", json}), 3)
        << name;
    EXPECT_FALSE(std::filesystem::exists(json)) << name;
  }
}

TEST_F(EvalCommand, AGalleryOfAnotherDimensionIsRefused) {
  EmbeddingSet other;
  other.dim = 5;
  other.embeddings.assign(5, 1.0F);
  other.labels = {1};
  const std::string gallery = in("eval_gallery.h5");
  write_embeddings(gallery, other);
  EXPECT_EQ(run_eval({"--embeddings", kGoldens + "ties.h5", "--gallery", gallery}), 3);
}

}  // namespace
}  // namespace rk
