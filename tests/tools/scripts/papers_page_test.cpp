// The commands of docs/papers.md must be ones that train takes: each runs on a few small pictures,
// with a network to match, as far as its first evaluation.
#include "tests/support/words.h"
#include "tests/tools/train/train_program.h"

#include <fmt/ranges.h>

#include <iterator>
#include <regex>

namespace rk {
namespace {

class PapersPage : public TrainProgram {
 protected:
  // The commands that call `train`, without what continues a line.
  static std::vector<Words> commands() {
    std::string page = file_text(RK_TEST_GOLDEN "/../../docs/papers.md");
    page = std::regex_replace(page, std::regex(R"(\\\n\s+)"), "");
    std::vector<Words> found;
    std::istringstream lines(page);
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("    build/bin/train ")) continue;
      std::istringstream words(line);
      found.emplace_back(std::istream_iterator<std::string>(words),
                         std::istream_iterator<std::string>());
    }
    return found;
  }
};

TEST_F(PapersPage, EveryCommandIsTaken) {
  for (const char* category : {"one", "two"}) {
    folder_.classes(std::string("set/train/") + category + "/" + category, 6, 4);
    folder_.classes(std::string("set/test/") + category + "/t" + category, 2, 4);
  }
  const std::vector<Words> all = commands();
  ASSERT_EQ(all.size(), 5U);
  for (Words words : all) {
    const auto value = [&](const char* flag) -> std::string& {
      const auto at = std::find(words.begin(), words.end(), flag);
      EXPECT_NE(at, words.end()) << flag;
      return at[1];
    };
    words[0] = RK_BIN "/train";
    const std::string& data = value("--data");
    const std::size_t options = std::min(data.find(','), data.size());
    value("--data") = "folder:" + in("set") + data.substr(options);
    // No weights are here: batch norm would be frozen with them.
    ASSERT_NE(std::find(words.begin(), words.end(), "--weights"), words.end());
    words = with_flags(
        without(words, "--weights"),
        {"--bn", "frozen", "--arch", "resnet20", "--dim", "8", "--image-size", "16", "--resize",
         "18", "--batch", "8", "--epochs", "0", "--threads", "2", "--out", in("run")});
    if (std::find(words.begin(), words.end(), "--chunk") != words.end()) value("--chunk") = "4";
    const Finished done = run(words);
    EXPECT_EQ(done.code, 0) << fmt::format("{}: {}", fmt::join(words, " "), done.err);
    // Nothing that the page sets may be without effect.
    EXPECT_FALSE(holds(done.err, "has no effect")) << done.err;
    std::filesystem::remove_all(in("run"));
  }
}

}  // namespace
}  // namespace rk
