#include "layers/graphs/plans.h"

#include "engine/base/error.h"
#include "tests/support/messages.h"
#include "tests/support/temporary_folder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace rk {
namespace {

TEST(GpuPlans, ReadsWhatItWrote) {
  GpuPlans plans("NVIDIA H200, cuDNN 91900");
  plans.add({.graph = "fp16 conv 1x2x3x4 -> 5, 3x3/1",
             .engines = {{.name = "eng1", .ms = 2}, {.name = "eng2_k1=3", .ms = 1}},
             .taken = 1});
  const TemporaryFolder folder;
  const std::string path = folder.in("plans.txt");
  std::ofstream(path) << plans.text();
  const GpuPlans read = GpuPlans::read(path);
  EXPECT_EQ(read.environment(), "NVIDIA H200, cuDNN 91900");
  EXPECT_EQ(read.engine("fp16 conv 1x2x3x4 -> 5, 3x3/1"), "eng2_k1=3");
  EXPECT_EQ(read.engine("fp16 conv 1x2x3x4 -> 6, 3x3/1"), "");
}

TEST(GpuPlans, RefusesOtherFilesNamingTheLine) {
  const TemporaryFolder folder;
  const std::string path = folder.in("plans.txt");
  const auto message = [&](const std::string& text) {
    std::ofstream(path) << text;
    return message_if_any<InputError>([&] { GpuPlans::read(path); });
  };
  EXPECT_TRUE(holds(message(""), "empty"));
  EXPECT_TRUE(holds(message("graph\tengine\ttime\n"), "line 1"));
  EXPECT_TRUE(holds(message("# GPU\ngraph engine\n"), "line 2"));
  EXPECT_TRUE(holds(message("# GPU\ngraph\tengine\t1 ms\ngraph\tengine\n"), "line 3"));
  EXPECT_EQ(message("# GPU\ngraph\tengine\t1 ms\n"), "");
}

// Most lists begin with many settings of one engine; the fastest one measured came after those.
TEST(GpuPlans, EnginesToTimeAreOfSeveralKinds) {
  using Places = std::vector<std::size_t>;
  const std::vector<std::string> names = {"eng62_k2=4", "eng62_k2=5", "eng62_k2=6", "eng62_k2=7",
                                          "eng62_k2=8", "eng62_k2=9", "eng39_k2=1", "eng62_k2=0",
                                          "eng39_k2=2", "eng39_k2=3", "eng1"};
  EXPECT_EQ(engines_to_time(names), (Places{0, 1, 2, 3, 4, 6, 8, 10, 5, 7, 9}));
  EXPECT_EQ(engines_to_time({"eng1"}), Places{0});
  EXPECT_TRUE(engines_to_time({}).empty());
}

}  // namespace
}  // namespace rk
