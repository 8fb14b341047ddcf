// docs/metrics.md must name every key of the JSON that train, eval, probe and convert write.
#include "tests/support/words.h"
#include "tests/tools/train/train_program.h"
#include "weights/hdf5/file.h"

namespace rk {
namespace {

using nlohmann::json;

class MetricsPageRun : public TrainProgram {
 protected:
  static std::string page() { return file_text(RK_TEST_GOLDEN "/../../docs/metrics.md"); }
  // Runs a program with --json; expects all keys, at any depth but below `settings`, on the page.
  void expect_named(Words words) const {
    words[0] = RK_BIN "/" + words[0];
    const Finished done =
        run(joined(words, {"--json", in("keys.json"), "--force", "-q", "--threads", "1"}));
    ASSERT_EQ(done.code, 0) << done.err;
    expect_keys(json::parse(file_text(in("keys.json"))), page());
  }

 private:
  static void expect_keys(const json& value, const std::string& page) {
    if (value.is_array() && !value.empty()) expect_keys(value[0], page);
    if (!value.is_object()) return;
    for (const auto& [key, inner] : value.items()) {
      const bool recall = key.starts_with("recall_at_");
      const bool deviation = key.ends_with("_deviation");
      EXPECT_TRUE(recall || deviation || page.find("`" + key + "`") != std::string::npos) << key;
      if (key != "settings") expect_keys(inner, page);
    }
  }
};

TEST_F(MetricsPageRun, NamesEveryKey) {
  folder_.classes("pics/train/one/c", 3, 4);
  folder_.classes("pics/train/two/d", 3, 4);
  folder_.classes("pics/test/one/t", 4, 4);
  expect_named({"train", "--data", "folder:" + in("pics"), "--arch", "resnet20", "--dim", "8",
                "--image-size", "16", "--resize", "16", "--batch", "8", "--per-class", "2",
                "--epochs", "2", "--out", in("run")});
  const std::string best = in("run/best.h5"), data = "folder:" + in("pics");
  expect_named({"eval", "--checkpoint", best, "--data", data, "--per-class", "--per-query",
                "--curves", "--nmi", "--confidence", "0.9", "--save-embeddings", in("e.h5")});
  expect_named({"eval", "--embeddings", in("e.h5"), "--gallery", in("e.h5"), "--normalize"});
  expect_named({"eval", "--embeddings", in("e.h5"), "--protocol", "vehicleid-official"});
  expect_named({"eval", "--compare", in("run"), in("run"), "--data", data});
  expect_named({"eval", "--checkpoint", best, "--index", in("e.h5"), "--query",
                in("pics/test/one/t0/0.png"), "--report", in("s.html")});
  expect_named({"convert", "--from-run", in("run"), in("o.safetensors")});
  expect_named({"probe", "--data", data});
  expect_named({"probe", "--image", in("pics/test/one/t0/0.png")});
  Hdf5Writer file;
  const std::vector<float> rows = {1, 0, 0.6F, 0.8F, 0, 1, 0.8F, 0.6F}, proxies = {1, 0, 0, 1};
  const std::vector<std::int64_t> labels = {0, 0, 1, 1};
  file.write("/embeddings", {4, 2}, rows.data());
  file.write("/labels", {4}, labels.data());
  file.write("/proxies", {2, 2}, proxies.data());
  folder_.write("p.h5", file.finish());
  expect_named({"probe", "--loss", "nsl", "--in", in("p.h5"), "--check", "--out", in("l.h5")});
  for (const char* written : {"/loss", "/valid_queries", "/grad", "/grad_proxies"}) {
    EXPECT_TRUE(Hdf5Reader(in("l.h5")).has(written));
    EXPECT_TRUE(holds(page(), std::string("`") + written + "`"));
    EXPECT_TRUE(holds(run({RK_BIN "/probe", "--help"}).out, written));
  }
}

}  // namespace
}  // namespace rk
