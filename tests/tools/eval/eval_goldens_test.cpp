// The golden cases through the program, as a user's files.
#include "retrieval/files/embeddings_file.h"
#include "tests/support/goldens/metric_goldens.h"
#include "tests/support/messages.h"
#include "tests/support/program_run.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/words.h"
#include "tools/eval/eval_command.h"
#include "weights/hdf5/file.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>

namespace rk {
namespace {

nlohmann::json result_of(const std::vector<std::string>& arguments, const std::string& json) {
  std::filesystem::remove(json);
  EXPECT_EQ(run_here("eval", joined(arguments, {"--json", json}), make_eval()).code, 0);
  std::ifstream file(json);
  return nlohmann::json::parse(file).at("metrics");
}

TEST(EvalGoldens, EveryCaseGivesItsValuesThroughTheProgram) {
  const TemporaryFolder folder;
  const auto in = [&](const std::string& name) { return folder.in(name); };
  const auto cases = golden::metric_cases(RK_TEST_GOLDEN "/metrics/");
  ASSERT_GE(cases.size(), 20U);
  for (const auto& path : cases) {
    SCOPED_TRACE(path.filename().string());
    const Hdf5Reader file(path.string());
    const EmbeddingSet queries = read_embeddings(file);
    write_embeddings(in("e.h5"), queries);
    std::vector<std::string> arguments{"--embeddings", in("e.h5"), "--per-query", "--nmi"};
    if (file.has("/gallery_embeddings")) {
      write_embeddings(in("g.h5"), read_embeddings(file, "gallery_"));
      arguments = joined(arguments, {"--gallery", in("g.h5")});
    }
    const nlohmann::json metrics = result_of(arguments, in("out.json"));
    nlohmann::json drawn;
    if (golden::has_drawn_galleries(path)) {
      drawn =
          result_of({"--embeddings", in("e.h5"), "--protocol", "vehicleid-official", "--seed", "0"},
                    in("out.json"));
    }
    const golden::MetricVerdict verdict = golden::compare_with_case(path, metrics, drawn);
    EXPECT_TRUE(verdict.passed) << verdict.detail;
  }
}

TEST(EvalGoldens, EveryBadFileIsRefused) {
  const TemporaryFolder folder;
  const std::string json = folder.in("out.json");
  auto paths = golden::bad_metric_cases(RK_TEST_GOLDEN "/metrics/");
  ASSERT_GE(paths.size(), 5U);
  paths.push_back(folder.path() / "missing.h5");
  for (const auto& path : paths) {
    SCOPED_TRACE(path.filename().string());
    std::vector<std::string> arguments{"--embeddings", path.string(), "--json", json};
    if (path.stem() == "gallery_other_dim") {
      const std::string gallery = folder.in("g.h5");
      write_embeddings(gallery, read_embeddings(Hdf5Reader(path.string()), "gallery_"));
      arguments = joined(arguments, {"--gallery", gallery});
    }
    const Finished refused = run_here("eval", arguments, make_eval());
    EXPECT_EQ(refused.code, 3);
    const std::string named =
        path.stem() == "gallery_other_dim" ? "g.h5" : path.filename().string();
    EXPECT_TRUE(holds(refused.err, named));
    EXPECT_FALSE(std::filesystem::exists(json));
  }
}

}  // namespace
}  // namespace rk
