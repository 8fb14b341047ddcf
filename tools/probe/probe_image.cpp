#include "tools/probe/probe_image.h"

#include "data/images/augment.h"
#include "data/images/decode.h"
#include "data/images/encode_png.h"
#include "data/images/exif.h"
#include "data/images/transform.h"
#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "tools/cli/flags/colour_values.h"
#include "tools/cli/flags/image_size.h"
#include "tools/cli/json_file.h"
#include "tools/cli/messages.h"
#include "tools/cli/output_files.h"
#include "tools/probe/contact_sheet.h"
#include "training/training_exif.h"
#include "weights/architectures/registry.h"
#include "weights/atomic_file.h"
#include "weights/checkpoint.h"
#include "weights/foreign/weight_files.h"
#include "weights/hdf5/file.h"
#include "weights/written_by.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rk {
namespace {

// A network's input is far smaller; above this the float tensor alone would be 200 MiB.
constexpr std::int64_t kMaxResult = std::int64_t{1} << 24;

class ProbeImage : public Command {
 public:
  void add_options(Flags& flags) override {
    // A required value would swallow --help.
    flags.add("--image", image_, "picture to look at (JPEG, PNG, BMP)")
        .type_name("FILE")
        .expected(0, 1);
    flags
        .add("--checkpoint", checkpoint_,
             "as this run's network sees it: its resize, stretch, image-size, input-mean, "
             "input-std and exif where they are not given here")
        .type_name("FILE");
    resize_option_ = flags
                         .add("--resize", resize_,
                              "length of the short side; 0: as it is (in `train`: 256 / 224 of "
                              "the image size)")
                         .check(in_range(0, kMostSide));
    stretch_option_ = flags.add_switch(
        "--stretch", stretch_, "resize to a square of that side, whatever the picture's shape");
    crop_option_ = flags.add("--image-size", crop_, "side of the centre crop; 0: none")
                       .check(in_range(0, 4096));
    exif_option_ =
        flags.add("--exif", exif_, "turn: upright as its EXIF orientation says; ignore: as stored")
            .check(one_of({"ignore", "turn"}));
    mean_option_ = flags
                       .add("--input-mean", mean_,
                            "subtracted from pixels in [0, 1]: one number, or red,green,blue")
                       .check({in_range(-kMostInput, kMostInput).problem})
                       .delimiter(',');
    std_option_ = flags.add("--input-std", std_, "what they are then divided by")
                      .check({in_range(kLeastInputStd, kMostInput).problem})
                      .delimiter(',');
    const Flag augment = flags
                             .add("--augment", augment_,
                                  "as training would change it at random (see `train --help`): "
                                  "--views of it, side by "
                                  "side in a PNG, one after another in HDF5; --seed draws others")
                             .type_name("SPEC");
    flags.add("--views", views_, "how many").check(in_range(1, 100)).needs(augment);
    flags
        .add("--out", out_,
             "FILE.png: the pixels as a picture; FILE.h5: HDF5 with /pixels and /tensor")
        .check(file_name())
        .type_name("FILE");
    flags.add("--show", show_, "PNG file for the pixels, beside --out")
        .check(file_name())
        .type_name("FILE");
  }

  void run(const CommonOptions& common) override {
    if (image_.empty()) fail<UsageError>("--image: which picture? For example --image photo.jpg");
    const bool picture_out = output_ending(out_) == ".png";
    check_outputs({{"--out", out_, picture_out ? FileKind::kPng : FileKind::kPixels},
                   {"--show", show_, FileKind::kPng},
                   {"--json", common.json, FileKind::kJson}},
                  {image_, checkpoint_}, common.force);
    give_each_colour("--input-mean", mean_);
    give_each_colour("--input-std", std_);
    if (!checkpoint_.empty()) {
      std::vector<std::string> said;
      see_as(open_weights(checkpoint_, "", said));
      for (const std::string& line : said) note(fmt::format("{}: {}", checkpoint_, line));
    }
    if (augment_ != "none") {
      // As `train` does: what fits 224 is no short side for 32.
      if (checkpoint_.empty() && !resize_option_.given()) {
        resize_ = static_cast<int>(default_resize(crop_));
      }
      if (resize_ == 0 && crop_ > 0) {
        fail<UsageError>(
            "--resize 0: leaves pictures as they are, and --augment changes what training would "
            "resize; give {} or more",
            crop_);
      }
      changes_ = parse_augment(augment_, center_crop(crop_, resize_, stretch_));
    }
    if (stretch_ && resize_ == 0) {
      fail<UsageError>("--stretch: to which size? --resize 0 leaves pictures as they are");
    }
    const ImageTransform transform = resize_and_crop(resize_, stretch_, crop_);
    const bool turn = exif_ == "turn";
    const auto [image, orientation] = read_photo(image_, turn);
    const ImageSize resized = resized_size(image.width(), image.height(), transform);
    if (crop_ == 0 && resized.width * resized.height > kMaxResult) {
      fail<InputError>("{}: {} x {} pixels after resizing; give --image-size or a smaller --resize",
                       image_, resized.width, resized.height);
    }
    const std::vector<Image> views = seen(image, transform, common.seed);
    const std::int64_t height = views[0].height();
    const std::int64_t width = views[0].width();
    // Both are encoded before either is written.
    const std::vector<std::byte> tensors =
        out_.empty() || picture_out ? std::vector<std::byte>{} : tensor_file(views, common.seed);
    const std::vector<std::byte> picture =
        show_.empty() && !picture_out ? std::vector<std::byte>{} : encode_png(contact_sheet(views));
    if (!out_.empty()) write_atomic(out_, picture_out ? picture : tensors);
    if (!show_.empty()) write_atomic(show_, picture);

    if (!common.quiet) {
      const std::string lies = fmt::format(", EXIF orientation {} ({})", orientation,
                                           turn ? "turned" : "not turned: --exif turn does");
      const std::string done = changes_ ? fmt::format("{} of {} x {}: {}", counted(views_, "view"),
                                                      width, height, augment_text(*changes_))
                                        : fmt::format("resized to {} x {}, seen as {} x {}",
                                                      resized.width, resized.height, width, height);
      print("{}: {} x {}{}, {}\n", one_line(image_), image.width(), image.height(),
            orientation == kUpright ? "" : lies, done);
      if (!out_.empty()) {
        print("{}: {}\n", one_line(out_), picture_out ? "the picture" : "/pixels and /tensor");
      }
      if (!show_.empty()) print("{}: the picture\n", one_line(show_));
    }
    nlohmann::json json = {{"image", image_},
                           {"width", image.width()},
                           {"height", image.height()},
                           {"exif_orientation", orientation}};
    if (changes_) {
      json.update({{"tensor_shape", {views_, 3, height, width}},
                   {"augment", augment_text(*changes_)},
                   {"resize", resize_},
                   {"stretch", stretch_},
                   {"seed", common.seed}});
    } else {
      json.update({{"tensor_shape", {3, height, width}},
                   {"resized_width", resized.width},
                   {"resized_height", resized.height}});
    }
    write_result(common, 1, std::move(json));
  }

 private:
  std::vector<Image> seen(const Image& image, const ImageTransform& transform,
                          std::uint64_t seed) const {
    try {
      std::vector<Image> out;
      if (changes_) {
        draw_views(image, seed, out);
      } else {
        out.push_back(apply(transform, image));
      }
      return out;
    } catch (const InputError& error) {
      fail<InputError>("{}: {}", image_, error.what());
    }
  }

  // What the first picture of a data set would become in as many epochs.
  void draw_views(const Image& image, std::uint64_t seed, std::vector<Image>& out) const {
    const AugmentOptions& options = *changes_;
    const std::int64_t pixels = std::int64_t{options.size} * options.size * views_;
    if (options.size == 0 || pixels > kMaxResult) {
      fail<UsageError>("--augment: {} of {} x {} pixels; give {}--image-size of 1 to {}",
                       counted(views_, "view"), options.size, options.size,
                       views_ > 1 ? "fewer --views or " : "",
                       static_cast<int>(std::sqrt(kMaxResult / views_)));
    }
    check_resize(options.resize, options.size);
    std::vector<std::uint8_t> scratch;
    for (int epoch = 0; epoch < views_; ++epoch) {
      Image& view = out.emplace_back(options.size, options.size);
      augment(image, options, augment_random(seed, epoch, 0, 0), view.data(), scratch);
    }
  }

  std::vector<std::byte> tensor_file(const std::vector<Image>& views, std::uint64_t seed) const {
    const FloatTable table(of_colours(mean_), of_colours(std_));
    std::vector<std::uint8_t> pixels;
    std::vector<float> tensor(views.size() * views[0].bytes());
    for (const Image& view : views) {
      table.to_chw(view, tensor.data() + pixels.size());
      pixels.insert(pixels.end(), view.data(), view.data() + view.bytes());
    }
    const std::int64_t height = views[0].height(), width = views[0].width();
    std::vector<std::int64_t> pixel_dims = {height, width, 3}, tensor_dims = {3, height, width};
    if (changes_) {
      pixel_dims.insert(pixel_dims.begin(), views_);
      tensor_dims.insert(tensor_dims.begin(), views_);
    }
    Hdf5Writer writer;
    sign(writer);
    writer.write("/pixels", pixel_dims, pixels.data());
    writer.write("/tensor", tensor_dims, tensor.data());
    writer.set_attribute("/", "resize", std::int64_t{resize_});
    if (stretch_) writer.set_attribute("/", "stretch", std::int64_t{1});
    writer.set_attribute("/", "crop", std::int64_t{crop_});
    if (changes_) {
      writer.set_attribute("/", "augment", augment_text(*changes_));
      writer.set_attribute("/", "seed", static_cast<std::int64_t>(seed));
    }
    return writer.finish();
  }

  static std::array<double, 3> of_colours(const std::vector<double>& values) {
    return {values[0], values[1], values[2]};
  }

  void see_as(const Checkpoint& checkpoint) {
    const ModelDescription& model = checkpoint.model();
    if (!resize_option_.given()) resize_ = static_cast<int>(model.resize);
    if (!stretch_option_.given()) stretch_ = model.stretch;
    if (!crop_option_.given()) crop_ = static_cast<int>(model.crop);
    if (!mean_option_.given()) mean_ = flag_colours(model.input_mean);
    if (!std_option_.given()) std_ = flag_colours(model.input_std);
    const std::string exif = training_exif(checkpoint);
    if (!exif_option_.given() && !exif.empty()) exif_ = exif;
  }

  std::string image_;
  std::string checkpoint_;
  std::string out_;
  std::string show_;
  std::string exif_ = "ignore";
  std::string augment_ = "none";
  std::optional<AugmentOptions> changes_;  // what --augment says; empty: none
  int views_ = 16;
  int resize_ = 256, crop_ = 224;
  bool stretch_ = false;
  std::vector<double> mean_ = flag_colours(ModelDescription{}.input_mean);
  std::vector<double> std_ = flag_colours(ModelDescription{}.input_std);
  Flag resize_option_, stretch_option_, crop_option_;
  Flag exif_option_, mean_option_, std_option_;
};

}  // namespace

std::unique_ptr<Command> make_probe_image() { return std::make_unique<ProbeImage>(); }

}  // namespace rk
