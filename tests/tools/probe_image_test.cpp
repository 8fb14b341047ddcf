#include "tools/probe_image.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "data/decode.h"
#include "tests/support/image_goldens.h"
#include "tests/tools/probe_run.h"
#include "weights/hdf5_file.h"

namespace rk {
namespace {

const std::filesystem::path kGoldens = std::filesystem::path(RK_TEST_GOLDEN) / "images";

class ProbeImage : public ProbeRun {
 protected:
  int probe(const std::vector<std::string>& arguments) {
    return run(arguments, make_probe_image());
  }
};

TEST_F(ProbeImage, WritesWhatTheNetworkSees) {
  const std::string image = (kGoldens / "files/q90_422.jpg").string();
  ASSERT_EQ(probe({"--image", image, "--out", path("t.h5"), "--show", path("t.png"), "--json",
                   path("t.json")}),
            0)
      << error_;
  const Hdf5Reader file(path("t.h5"));
  const auto pixels = file.read<std::uint8_t>("/pixels");
  const auto tensor = file.read<float>("/tensor");
  EXPECT_EQ(file.info("/pixels").dims, (std::vector<std::int64_t>{224, 224, 3}));
  EXPECT_EQ(file.info("/tensor").dims, (std::vector<std::int64_t>{3, 224, 224}));

  const golden::ImageGoldens goldens(kGoldens);
  int compared = 0;
  for (const nlohmann::json& entry : goldens.manifest.at("files")) {
    if (entry.at("file") != "files/q90_422.jpg") continue;
    for (const nlohmann::json& expected : entry.at("tensors")) {
      if (expected.at("transform") != "imagenet_v1") continue;
      EXPECT_EQ(golden::sha256(std::as_bytes(std::span(pixels))), expected.at("cropped_sha256"));
      EXPECT_EQ(golden::sha256(std::as_bytes(std::span(tensor))), expected.at("tensor_sha256"));
      ++compared;
    }
  }
  EXPECT_EQ(compared, 1);

  const Image shown = read_image(path("t.png"));
  EXPECT_EQ(std::vector<std::uint8_t>(shown.data(), shown.data() + shown.bytes()), pixels);
  const auto json = nlohmann::json::parse(std::ifstream(path("t.json")));
  EXPECT_EQ(json.at("width"), 333);
  EXPECT_EQ(json.at("tensor_shape"), (std::vector<int>{3, 224, 224}));
}

TEST_F(ProbeImage, BadPictureIsNamedAndNothingIsWritten) {
  std::ofstream(path("t.h5")) << "as it was";
  const std::string image = (kGoldens / "bad/truncated_50.jpg").string();
  EXPECT_EQ(probe({"--image", image, "--out", path("t.h5"), "--show", path("t.png"), "--force"}),
            3);
  EXPECT_TRUE(error_.starts_with("error: " + image + ": corrupt")) << error_;
  EXPECT_EQ(std::count(error_.begin(), error_.end(), '\n'), 1) << error_;
  EXPECT_FALSE(std::filesystem::exists(path("t.png")));
  std::ifstream kept(path("t.h5"));
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(kept), {}), "as it was");

  EXPECT_EQ(probe({"--image", path("none.jpg"), "--out", path("t.h5"), "--force"}), 3);
  const std::string line = (kGoldens / "files/line_1x300.png").string();
  EXPECT_EQ(probe({"--image", line, "--crop", "0", "--out", path("t.h5"), "--force"}), 3);
  EXPECT_NE(error_.find("give --crop"), std::string::npos) << error_;
}

TEST_F(ProbeImage, WrongUsageIsTwo) {
  const std::string image = (kGoldens / "files/rgb8.png").string();
  EXPECT_EQ(probe({"--image", image}), 2);
  EXPECT_EQ(probe({"--image", image, "--out", path("t.h5"), "--crop", "-1"}), 2);
  EXPECT_EQ(probe({"--image", image, "--out", path("t.h5"), "--std", "1", "1", "0"}), 2);
  EXPECT_FALSE(std::filesystem::exists(path("t.h5")));
}

}  // namespace
}  // namespace rk
