// The generator behind the golden networks against the sums and bits published with them, and its
// input names and shapes against a list that torchvision printed.
#include "tests/support/goldens/golden_generator.h"
#include "tests/support/goldens/image_goldens.h"
#include "tests/support/weights/torchvision.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <fstream>
#include <span>
#include <sstream>
#include <vector>

namespace rk::golden {
namespace {

std::string sum_of(const std::vector<float>& values) {
  return sha256(std::as_bytes(std::span(values)));
}

std::vector<float> whole_network(bool bottleneck) {
  const Generator generator{.bottleneck = bottleneck};
  std::vector<float> all;
  for (const NamedShape& entry : torchvision_network(bottleneck ? "resnet50" : "resnet18")) {
    if (entry.dims.empty()) continue;
    const std::vector<float> tensor = generator.tensor(entry.name, entry.dims);
    all.insert(all.end(), tensor.begin(), tensor.end());
  }
  return all;
}

TEST(GoldenGenerator, KeysAndBits) {
  EXPECT_EQ(key_seed("conv1.weight"), 0x69a29a2cee47d254U);
  EXPECT_EQ(key_seed("layer1.0.bn3.weight"), 0x2ec3c5c9dc4cece2U);
  struct Case {
    const char* key;
    std::vector<std::int64_t> dims;
    std::uint32_t bits[3];
  };
  const Generator resnet50{.bottleneck = true};
  for (const Case& c :
       {Case{"conv1.weight", {64, 3, 7, 7}, {0x3c95337c, 0x3dcae01f, 0xbe45652c}},
        Case{"bn1.weight", {64}, {0x3f6e1b2a, 0x3f94c31e, 0x3f846d93}},
        Case{"bn1.bias", {64}, {0xbf27d5e6, 0xbf6b70dc, 0x3f3e7668}},
        Case{"bn1.running_mean", {64}, {0x3df013a4, 0x3d4e1128, 0x3cac6e60}},
        Case{"bn1.running_var", {64}, {0x3f891b91, 0x3f925a2b, 0x3f9e213e}},
        Case{"layer1.0.bn3.weight", {256}, {0x3e10d204, 0x3e7e7d10, 0x3e7aa61c}},
        Case{"embedding.weight", {128, 2048}, {0x3cc025be, 0x3ced2317, 0xbcf32db2}}}) {
    const std::vector<float> values = resnet50.tensor(c.key, c.dims);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(values[i]), c.bits[i]) << c.key << " " << i;
    }
  }
}

TEST(GoldenGenerator, WholeNetworks) {
  EXPECT_EQ(sum_of(whole_network(false)),
            "f8c2594abf845fcf7e5edd6a70bdfd63bcd71db198606c120f427e35837aafb9");
  EXPECT_EQ(sum_of(whole_network(true)),
            "1db591c1f77ab074493b01f5790c3c0e9c347f11a5479ec9fb0928b45bd45f72");
}

TEST(GoldenGenerator, ImagesAndCotangents) {
  const Generator generator;
  EXPECT_EQ(sum_of(generator.images("test", 2, 33, 47)),
            "6aa61bf79e2feaef1ed37210a0b6822731a80f38ba5a3797856f4dd0ce384506");
  EXPECT_EQ(sum_of(generator.cotangent("test", 2, 128)),
            "b13cbb6cde039b6c819a79381b46f94345442449b7f09589ed1d6c70a7b950a4");
}

// Lines of the list: "layer1.0.conv1.weight (64, 64, 1, 1) torch.float32".
TEST(Torchvision, NamesAndShapesOfResNet50) {
  std::ifstream file(RK_TEST_GOLDEN "/networks/resnet50_keys.txt");
  ASSERT_TRUE(file.is_open());
  const std::vector<NamedShape> ours = torchvision_network("resnet50");
  std::size_t row = 0;
  for (std::string line; std::getline(file, line); ++row) {
    ASSERT_LT(row, ours.size());
    std::string expected = ours[row].name + " (";
    const std::vector<std::int64_t>& dims = ours[row].dims;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      expected += (i > 0 ? ", " : "") + std::to_string(dims[i]);
    }
    expected += dims.size() == 1 ? ",)" : ")";
    EXPECT_EQ(line.substr(0, line.rfind(' ')), expected);
  }
  EXPECT_EQ(row, ours.size());
}

}  // namespace
}  // namespace rk::golden
