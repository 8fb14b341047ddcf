#include "tools/probe_image.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "data/decode.h"
#include "data/encode_png.h"
#include "data/exif.h"
#include "data/transform.h"
#include "engine/error.h"
#include "engine/read_file.h"
#include "tools/json_file.h"
#include "tools/output_files.h"
#include "weights/atomic_file.h"
#include "weights/hdf5_file.h"

namespace rk {
namespace {

// A network's input is far smaller; above this the float tensor alone would be 200 MiB.
constexpr std::int64_t kMaxResult = std::int64_t{1} << 24;

class ProbeImage : public Command {
 public:
  void add_options(CLI::App& app) override {
    app.add_option("--image", image_, "Picture to look at (JPEG, PNG, BMP)")->required();
    app.add_option("--resize", transform_.short_side, "Length of the short side; 0: as it is")
        ->check(CLI::Range(0, kMaxImageSide));
    app.add_option("--crop", transform_.crop, "Side of the centre crop; 0: none")
        ->check(CLI::Range(0, 4096));
    app.add_option("--exif", exif_, "turn: upright as its EXIF orientation says; ignore: as stored")
        ->check(CLI::IsMember({"ignore", "turn"}));
    app.add_option("--mean", mean_, "Subtracted from R G B in [0, 1]");
    app.add_option("--std", std_, "Divides R G B after that");
    app.add_option("--out", out_, "HDF5 file for /pixels and /tensor")->required();
    app.add_option("--show", show_, "PNG file for the pixels");
  }

  void run(const CommonOptions& common) override {
    check_outputs({{"--out", out_, FileKind::kPixels},
                   {"--show", show_, FileKind::kPng},
                   {"--json", common.json, FileKind::kJson}},
                  {image_}, common.force);
    for (const float divisor : std_) {
      if (!(divisor > 0.0F))
        fail<UsageError>("--std: expected numbers above zero, got {}", divisor);
    }
    const std::vector<std::byte> bytes = read_file(image_, kMaxImageFileBytes);
    const int orientation = exif_orientation(bytes);
    const bool turn = exif_ == "turn";
    const Image image =
        turn ? turn_upright(decode_image(bytes, image_), orientation) : decode_image(bytes, image_);
    const ImageSize resized = resized_size(image.width(), image.height(), transform_);
    if (transform_.crop == 0 && resized.width * resized.height > kMaxResult) {
      fail<InputError>("{}: {} x {} pixels after resizing; give --crop or a smaller --resize",
                       image_, resized.width, resized.height);
    }
    const Image pixels = apply(transform_, image);
    std::vector<float> tensor(pixels.bytes());
    FloatTable(mean_, std_).to_chw(pixels, tensor.data());

    const std::int64_t height = pixels.height();
    const std::int64_t width = pixels.width();
    Hdf5Writer writer;
    writer.write("/pixels", {height, width, 3}, pixels.data());
    writer.write("/tensor", {3, height, width}, tensor.data());
    writer.set_attribute("/", "resize", std::int64_t{transform_.short_side});
    writer.set_attribute("/", "crop", std::int64_t{transform_.crop});
    const std::vector<std::byte> file = writer.finish();
    const std::vector<std::byte> picture =
        show_.empty() ? std::vector<std::byte>{} : encode_png(pixels);
    write_atomic(out_, file);
    if (!show_.empty()) write_atomic(show_, picture);

    if (!common.quiet) {
      const std::string lies = fmt::format(", EXIF orientation {} ({})", orientation,
                                           turn ? "turned" : "not turned: --exif turn does");
      fmt::print("{}: {} x {}{}, resized to {} x {}, seen as {} x {}\n", one_line(image_),
                 image.width(), image.height(), orientation == kUpright ? "" : lies, resized.width,
                 resized.height, width, height);
    }
    if (!common.json.empty()) {
      write_json(common.json, {{"image", image_},
                               {"width", image.width()},
                               {"height", image.height()},
                               {"exif_orientation", orientation},
                               {"resized_width", resized.width},
                               {"resized_height", resized.height},
                               {"tensor_shape", {3, height, width}},
                               {"version", RK_VERSION}});
    }
  }

 private:
  std::string image_;
  std::string out_;
  std::string show_;
  std::string exif_ = "ignore";
  ImageTransform transform_;
  std::array<float, 3> mean_{0.485F, 0.456F, 0.406F};
  std::array<float, 3> std_{0.229F, 0.224F, 0.225F};
};

}  // namespace

std::unique_ptr<Command> make_probe_image() { return std::make_unique<ProbeImage>(); }

}  // namespace rk
