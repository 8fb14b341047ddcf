#include "layers/graphs/plans.h"

#include "engine/base/error.h"
#include "tests/data/temporary_folder.h"

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
  const std::string path = (folder.path() / "plans.txt").string();
  std::ofstream(path) << plans.text();
  const GpuPlans read = GpuPlans::read(path);
  EXPECT_EQ(read.environment(), "NVIDIA H200, cuDNN 91900");
  EXPECT_EQ(read.engine("fp16 conv 1x2x3x4 -> 5, 3x3/1"), "eng2_k1=3");
  EXPECT_EQ(read.engine("fp16 conv 1x2x3x4 -> 6, 3x3/1"), "");
}

TEST(GpuPlans, RefusesOtherFilesNamingTheLine) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "plans.txt").string();
  const auto message = [&](const std::string& text) -> std::string {
    std::ofstream(path) << text;
    try {
      GpuPlans::read(path);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message("").find("empty"), std::string::npos);
  EXPECT_NE(message("graph\tengine\ttime\n").find("line 1"), std::string::npos);
  EXPECT_NE(message("# GPU\ngraph engine\n").find("line 2"), std::string::npos);
  EXPECT_EQ(message("# GPU\ngraph\tengine\t1 ms\n"), "");
}

}  // namespace
}  // namespace rk
