#include "tools/probe/probe_image.h"

#include "data/images/augment.h"
#include "data/images/decode.h"
#include "data/images/transform.h"
#include "tests/data/rotated_png.h"
#include "tests/support/goldens/image_goldens.h"
#include "tests/support/read_image.h"
#include "tests/support/weights/torch_network.h"
#include "tests/support/words.h"
#include "tests/tools/probe/probe_run.h"
#include "weights/architectures/registry.h"
#include "weights/atomic_file.h"
#include "weights/checkpoint.h"
#include "weights/hdf5/file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

namespace rk {
namespace {

const std::filesystem::path kGoldens = std::filesystem::path(RK_TEST_GOLDEN) / "images";

class ProbeImage : public ProbeRun {
 protected:
  int probe(const std::vector<std::string>& arguments) {
    return run(arguments, make_probe_image());
  }
  // Writes up.png, 40 x 30, and lies.png, the same with an EXIF orientation that turns it.
  void write_lying() const {
    folder_.picture("up.png", 7, 40, 30);
    folder_.write("lies.png", rotated_png(file_text(in("up.png"))));
  }
};

TEST_F(ProbeImage, WritesWhatTheNetworkSees) {
  const std::string image = (kGoldens / "files/q90_422.jpg").string();
  ASSERT_EQ(
      probe({"--image", image, "--out", in("t.h5"), "--show", in("t.png"), "--json", in("t.json")}),
      0)
      << error_;
  const Hdf5Reader file(in("t.h5"));
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
      EXPECT_EQ(golden::sha256(std::as_bytes(std::span(pixels))),
                expected.at("cropped_sha256").get<std::string>());
      EXPECT_EQ(golden::sha256(std::as_bytes(std::span(tensor))),
                expected.at("tensor_sha256").get<std::string>());
      ++compared;
    }
  }
  EXPECT_EQ(compared, 1);

  const Image shown = read_image(in("t.png"));
  EXPECT_EQ(std::vector<std::uint8_t>(shown.data(), shown.data() + shown.bytes()), pixels);
  const auto json = nlohmann::json::parse(std::ifstream(in("t.json")));
  EXPECT_EQ(json.at("width"), 333);
  EXPECT_EQ(json.at("tensor_shape"), (std::vector<int>{3, 224, 224}));
}

TEST_F(ProbeImage, APictureByItsNameAndNothingElse) {
  const std::string image = (kGoldens / "files/q90_422.jpg").string();
  ASSERT_EQ(probe({"--image", image, "--out", in("both.h5"), "--show", in("show.png")}), 0);
  ASSERT_EQ(probe({"--image", image, "--out", in("see.PNG")}), 0) << error_;
  const Image shown = read_image(in("show.png")), seen = read_image(in("see.PNG"));
  ASSERT_EQ(seen.width(), shown.width());
  EXPECT_TRUE(std::equal(seen.data(), seen.data() + seen.bytes(), shown.data()));
  ASSERT_EQ(probe({"--image", image}), 0) << error_;
  EXPECT_TRUE(holds(out_, "333 x "));
  EXPECT_EQ(probe({"--image", "--help"}), 0) << error_;
  EXPECT_TRUE(holds(out_, "--resize"));
  EXPECT_EQ(probe({"--image"}), 2);
  EXPECT_TRUE(holds(error_, "--image: which picture?"));
}

TEST_F(ProbeImage, APictureThatLiesIsTurnedWhereAsked) {
  write_lying();
  ASSERT_EQ(probe({"--image", in("lies.png"), "--resize", "0", "--image-size", "0"}), 0) << error_;
  EXPECT_TRUE(holds(out_, "40 x 30, EXIF orientation 6 (not turned: --exif turn does), resized"));
  ASSERT_EQ(probe({"--image", in("lies.png"), "--exif", "turn", "--resize", "0", "--image-size",
                   "0", "--out", in("turned.png")}),
            0)
      << error_;
  EXPECT_TRUE(holds(out_, "30 x 40, EXIF orientation 6 (turned), resized"));
  const Image up = read_image(in("up.png")), turned = read_image(in("turned.png"));
  for (int y = 0; y < 40; ++y) {
    for (int x = 0; x < 30; ++x) {
      EXPECT_TRUE(std::equal(turned.pixel(x, y), turned.pixel(x, y) + 3, up.pixel(y, 29 - x)));
    }
  }
  EXPECT_EQ(probe({"--image", in("lies.png"), "--exif", "yes"}), 2);
}

TEST_F(ProbeImage, ACheckpointSaysWhatItsNetworkSees) {
  ModelDescription model;
  model.resize = 72;
  model.crop = 64;
  model.input_mean = {0.5, 0.25, 0.125};
  model.input_std = {2, 2, 2};
  RunState state;
  state.settings = R"({"data": "folder:/photos,exif=turn"})";
  CheckpointWriter writer(model, state);
  const float one = 1;
  writer.weight("w", {1}, &one);
  write_atomic(in("run.h5"), writer.finish());
  const std::string image = (kGoldens / "files/q90_422.jpg").string();
  ASSERT_EQ(probe({"--image", image, "--checkpoint", in("run.h5"), "--out", in("t.h5"),
                   "--input-std", "1", "1", "1"}),
            0)
      << error_;
  EXPECT_TRUE(holds(out_, "seen as 64 x 64"));
  ASSERT_EQ(probe({"--image", image, "--resize", "72", "--image-size", "64", "--input-mean", "0.5",
                   "0.25", "0.125", "--input-std", "1", "1", "1", "--out", in("by_hand.h5")}),
            0);
  EXPECT_EQ(Hdf5Reader(in("t.h5")).read<float>("/tensor"),
            Hdf5Reader(in("by_hand.h5")).read<float>("/tensor"));
  // The values may also be one word with commas, as train takes them and --help shows them.
  ASSERT_EQ(probe({"--image", image, "--resize", "72", "--image-size", "64", "--input-mean",
                   "0.5,0.25,0.125", "--input-std", "1,1,1", "--out", in("commas.h5")}),
            0)
      << error_;
  EXPECT_EQ(Hdf5Reader(in("t.h5")).read<float>("/tensor"),
            Hdf5Reader(in("commas.h5")).read<float>("/tensor"));
  // One number is that of all three colours, as train takes it.
  ASSERT_EQ(probe({"--image", image, "--resize", "72", "--image-size", "64", "--input-std", "0.5",
                   "--input-mean", "0.25", "--out", in("grey.h5")}),
            0)
      << error_;
  ASSERT_EQ(probe({"--image", image, "--resize", "72", "--image-size", "64", "--input-std",
                   "0.5,0.5,0.5", "--input-mean", "0.25,0.25,0.25", "--out", in("greys.h5")}),
            0);
  EXPECT_EQ(Hdf5Reader(in("grey.h5")).read<float>("/tensor"),
            Hdf5Reader(in("greys.h5")).read<float>("/tensor"));
  write_lying();
  ASSERT_EQ(probe({"--image", in("lies.png"), "--checkpoint", in("run.h5")}), 0) << error_;
  EXPECT_TRUE(holds(out_, "EXIF orientation 6 (turned)"));
}

TEST_F(ProbeImage, OtherProgramsWeightsSayWhatTheirNetworkSees) {
  folder_.write("r.pth", torch_zip(torch_network("resnet20")));
  const std::string image = (kGoldens / "files/q90_422.jpg").string();
  ASSERT_EQ(probe({"--image", image, "--checkpoint", in("r.pth")}), 0) << error_;
  EXPECT_TRUE(holds(out_, "seen as 32 x 32"));
}

TEST_F(ProbeImage, BadPictureIsNamedAndNothingIsWritten) {
  std::ofstream(in("t.h5")) << "as it was";
  const std::string image = (kGoldens / "bad/truncated_50.jpg").string();
  EXPECT_EQ(probe({"--image", image, "--out", in("t.h5"), "--show", in("t.png"), "--force"}), 3);
  EXPECT_TRUE(error_.starts_with("error: " + image + ": corrupt")) << error_;
  EXPECT_EQ(std::count(error_.begin(), error_.end(), '\n'), 1) << error_;
  EXPECT_FALSE(std::filesystem::exists(in("t.png")));
  EXPECT_EQ(file_text(in("t.h5")), "as it was");

  EXPECT_EQ(probe({"--image", in("none.jpg"), "--out", in("t.h5"), "--force"}), 3);
  const std::string line = (kGoldens / "files/line_1x300.png").string();
  EXPECT_EQ(probe({"--image", line, "--image-size", "0", "--out", in("t.h5"), "--force"}), 3);
  EXPECT_TRUE(holds(error_, "give --image-size"));
}

TEST_F(ProbeImage, WrongUsageIsTwo) {
  const std::string image = (kGoldens / "files/rgb8.png").string();
  EXPECT_EQ(probe({"--image", image, "--out", in("t.h5"), "--image-size", "-1"}), 2);
  EXPECT_EQ(probe({"--image", image, "--out", in("t.jpg")}), 2);
  EXPECT_TRUE(holds(error_, "are written as PNG or HDF5; call the file t.png or t.h5"));
  // No network has a longer short side; with a random crop more than that overflowed.
  EXPECT_EQ(probe({"--image", image, "--out", in("t.h5"), "--resize", "8193"}), 2);
  EXPECT_TRUE(holds(error_, "--resize: expected an integer of 0 to 8192, got 8193"));
  EXPECT_EQ(probe({"--image", image, "--out", in("t.h5"), "--input-std", "1", "1", "0"}), 2);
  EXPECT_EQ(probe({"--image", image, "--out", in("t.h5"), "--input-mean", "0.5,0.5"}), 2);
  EXPECT_TRUE(holds(error_, "--input-mean: give one number, or red,green,blue"));
  EXPECT_EQ(probe({"--image", image, "--out", in("t.h5"), "--input-std", "0.1,0.2,0.3,0.4"}), 2);
  EXPECT_TRUE(holds(error_, "--input-std: give one number, or red,green,blue"));
  EXPECT_EQ(probe({"--image", image, "--out", in("t.h5"), "--input-mean", "0", "inf", "0"}), 2);
  EXPECT_EQ(probe({"--image", image, "--out", in("t.h5"), "--input-mean", "0", "1e9", "0"}), 2);
  EXPECT_FALSE(std::filesystem::exists(in("t.h5")));
}

// What training makes of the picture in its first epochs, if it is the first of its data set.
TEST_F(ProbeImage, ShowsWhatTrainingWouldDraw) {
  folder_.picture("p.png", 7, 60, 50);
  const Image picture = read_image(in("p.png"));
  const std::string spec = "crop=resized,flip=0.5,rotation=20,fill=white";
  const AugmentOptions options = parse_augment(spec, center_crop(24, 32));
  ASSERT_EQ(probe({"--image", in("p.png"), "--resize", "32", "--image-size", "24", "--augment",
                   spec, "--views", "5", "--seed", "9", "--out", in("v.h5"), "--show", in("v.png"),
                   "--json", in("v.json")}),
            0)
      << error_;
  EXPECT_EQ(out_, in("p.png") + ": 60 x 50, 5 views of 24 x 24: " + augment_text(options) + "\n" +
                      in("v.h5") + ": /pixels and /tensor\n" + in("v.png") + ": the picture\n");
  const Hdf5Reader file(in("v.h5"));
  EXPECT_EQ(file.info("/pixels").dims, (std::vector<std::int64_t>{5, 24, 24, 3}));
  EXPECT_EQ(file.info("/tensor").dims, (std::vector<std::int64_t>{5, 3, 24, 24}));
  const auto pixels = file.read<std::uint8_t>("/pixels");
  const auto tensor = file.read<float>("/tensor");
  // Three columns, two rows, lines of two grey pixels.
  const Image sheet = read_image(in("v.png"));
  ASSERT_EQ(sheet.width(), 3 * 24 + 2 * 2);
  ASSERT_EQ(sheet.height(), 2 * 24 + 2);
  std::vector<int> covered(static_cast<std::size_t>(sheet.width() * sheet.height()));
  std::vector<std::uint8_t> scratch;
  Image view(24, 24);
  for (int v = 0; v < 5; ++v) {
    augment(picture, options, augment_random(9, v, 0, 0), view.data(), scratch);
    const auto begin = pixels.begin() + static_cast<std::ptrdiff_t>(v) * 24 * 24 * 3;
    EXPECT_TRUE(std::equal(view.data(), view.data() + view.bytes(), begin)) << v;
    std::vector<float> expected(view.bytes());
    FloatTable({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}).to_chw(view, expected.data());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(),
                           tensor.begin() + static_cast<std::ptrdiff_t>(v) * 24 * 24 * 3))
        << v;
    const int left = v % 3 * 26, top = v / 3 * 26;
    for (int y = 0; y < 24; ++y) {
      EXPECT_TRUE(
          std::equal(view.row(y), view.row(y) + view.row_bytes(), sheet.pixel(left, top + y)))
          << v << ", row " << y;
      std::fill_n(covered.begin() + (top + y) * sheet.width() + left, 24, 1);
    }
  }
  for (std::size_t at = 0; at < covered.size(); ++at) {
    if (covered[at] == 0) {
      for (std::size_t c = 0; c < 3; ++c) EXPECT_EQ(sheet.data()[3 * at + c], 128);
    }
  }
  const auto json = nlohmann::json::parse(std::ifstream(in("v.json")));
  EXPECT_EQ(json.at("tensor_shape"), nlohmann::json({5, 3, 24, 24}));
  EXPECT_EQ(json.at("augment"), augment_text(options));
  EXPECT_EQ(json.at("seed"), 9);
  EXPECT_EQ(file.text_attribute("/", "augment"), augment_text(options));
  EXPECT_EQ(file.integer_attribute("/", "seed"), 9);
}

TEST_F(ProbeImage, WithoutAChangeTheViewsAreTheCentre) {
  folder_.picture("p.png", 7, 60, 50);
  const std::vector<std::string> least = {"--image", in("p.png"),    "--resize",
                                          "32",      "--image-size", "24"};
  const auto pixels = [&](const std::vector<std::string>& more) {
    EXPECT_EQ(probe(joined(joined(least, more), {"--out", in("v.h5"), "--force"})), 0) << error_;
    return Hdf5Reader(in("v.h5")).read<std::uint8_t>("/pixels");
  };
  EXPECT_EQ(pixels({"--augment", "none", "--views", "1"}), pixels({}));
}

TEST_F(ProbeImage, ViewsAreResizedAsTrainingDoes) {
  folder_.picture("p.png", 7, 60, 50);
  for (const auto& [size, side] : {std::pair{"32", default_resize(32)}, {"224", 256}}) {
    EXPECT_EQ(probe({"--image", in("p.png"), "--augment", "flip=1", "--image-size", size, "--json",
                     in("v.json"), "--force"}),
              0)
        << error_;
    EXPECT_EQ(nlohmann::json::parse(std::ifstream(in("v.json"))).at("resize"), side);
  }
}

TEST_F(ProbeImage, ViewsThatCannotBeAreRefused) {
  folder_.picture("p.png", 7, 60, 50);
  const auto refused = [&](const std::vector<std::string>& more, int code, const std::string& why) {
    EXPECT_EQ(probe(joined({"--image", in("p.png"), "--out", in("v.png")}, more)), code) << why;
    EXPECT_TRUE(holds(error_, why));
  };
  refused({"--views", "3"}, 2, "--augment");
  refused({"--augment", "flop=1"}, 2, "flop");
  refused({"--augment", "flip=1", "--image-size", "0"}, 2, "16 views of 0 x 0 pixels");
  refused({"--augment", "flip=1", "--image-size", "2000", "--resize", "2000"}, 2,
          "16 views of 2000 x 2000 pixels; give fewer --views or --image-size of 1 to 1024");
  refused({"--augment", "flip=1", "--image-size", "5000", "--views", "1"}, 2, "0 to 4096");
  refused({"--augment", "flip=1", "--image-size", "48", "--resize", "40"}, 2,
          "--resize 40 leaves less than --image-size 48; give 48 or more");
  refused({"--augment", "crop=random", "--image-size", "48", "--resize", "40"}, 2,
          "--augment: crop=random of 48 pixels from pictures resized to 40; resize to more");
  refused({"--augment", "flip=1", "--image-size", "32", "--resize", "0"}, 2,
          "--resize 0: leaves pictures as they are");
  refused({"--stretch", "--resize", "0"}, 2, "--stretch: to which size?");
  EXPECT_FALSE(std::filesystem::exists(in("v.png")));
}

}  // namespace
}  // namespace rk
