#include "tools/probe/probe_data.h"

#include "data/images/exif.h"
#include "data/sources/open_dataset.h"
#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/integers.h"
#include "engine/base/printable.h"
#include "tools/cli/json_file.h"
#include "tools/cli/messages.h"
#include "tools/cli/output_files.h"
#include "tools/cli/progress.h"
#include "tools/probe/data_survey.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace rk {
namespace {

using nlohmann::json;

constexpr std::size_t kShown = 10;

std::int64_t pixels(const SurveyedPicture& picture) {
  return std::int64_t{picture.width} * picture.height;
}

// "24 to 100", or "24" if all are alike.
std::string range_of(const std::vector<SurveyedPicture>& pictures, int SurveyedPicture::*side) {
  const auto [least, most] =
      std::ranges::minmax(pictures, {}, [side](const auto& picture) { return picture.*side; });
  return least.*side == most.*side ? fmt::format("{}", least.*side)
                                   : fmt::format("{} to {}", least.*side, most.*side);
}

void print_some(const std::vector<std::string>& lines) {
  for (std::size_t i = 0; i < std::min(kShown, lines.size()); ++i) {
    print("    {}\n", one_line(lines[i]));
  }
  if (lines.size() > kShown) {
    print("    and {} more, all in --json FILE\n", lines.size() - kShown);
  }
}

// Where a file was found.
struct Place {
  std::string path, split, of_class;
};

class ProbeData final : public Command {
 public:
  void add_options(Flags& flags) override {
    flags
        .add(
            "--data", data_,
            "data set to look through, KIND:PATH[,key=value]\n" + dataset_help(/*only_files=*/true))
        .type_name("SPEC")
        .expected(0, 1);  // a required value would swallow --help
  }

  void run(const CommonOptions& common) override {
    if (data_.empty()) fail<UsageError>("--data: which data set? For example --data folder:photos");
    const DataSpec spec = read_data_spec(data_);
    check_outputs({{"--json", common.json, FileKind::kJson}}, {spec.path}, common.force);
    const Context context(common.threads);
    json report = {{"data", spec.text()}, {"splits", json::array()}};
    std::vector<std::string> unreadable;
    std::int64_t images = 0, system_failed = 0;
    std::vector<Split> splits = dataset_splits(spec);
    // Moves `test` to the end: if it consists of query and gallery, its pictures are then already
    // known.
    std::stable_partition(splits.begin(), splits.end(),
                          [](Split split) { return split != Split::kTest; });
    count_both_sides(spec, splits);
    for (const Split split : splits) {
      const Dataset data = open_dataset(spec, split);
      if (data.size() > 0 && data.items().front().path.empty()) {
        fail<UsageError>("--data {}: is drawn, so that there are no files to look at", data_);
      }
      if (data.size() > 0 && seen_.contains(data.item_name(0))) continue;
      Progress progress("looking", data.size(), "images", common.quiet);
      const std::vector<SurveyedPicture> found =
          survey(context, data, [&](std::int64_t done) { progress.update(done); });
      progress.finish();
      images += data.size();
      system_failed += std::ranges::count_if(found, &SurveyedPicture::system_failed);
      report["splits"].push_back(tell(spec, split, data, found, unreadable));
      remember(data, found);
    }
    report["equal_files"] = tell_equal_files();
    report["unreadable"] = unreadable;
    write_result(common, context.threads(), std::move(report));
    if (!unreadable.empty()) {
      fail<InputError>(
          "{}: {} of {} cannot be read; mend or remove them (train --max-bad {} and eval "
          "--skip-bad leave them out{})",
          spec.text(), unreadable.size(), counted(images, "image"), unreadable.size(),
          system_failed == 0 ? ""
                             : fmt::format(", but stop at {} of them, where the system fails, not "
                                           "the picture",
                                           system_failed));
    }
  }

 private:
  static bool is_side(Split split) { return split == Split::kQuery || split == Split::kGallery; }

  // A picture's partner may lie on the other side of the test, so counts the images of both sides.
  void count_both_sides(const DataSpec& spec, std::span<const Split> splits) {
    for (const Split split : splits) {
      if (!is_side(split)) continue;
      const Dataset data = open_dataset(spec, split);
      for (std::size_t c = 0; c < data.members().size(); ++c) {
        of_both_sides_[data.classes()[c].name] += data.members()[c].size();
      }
    }
  }

  json tell(const DataSpec& spec, Split split, const Dataset& data,
            std::span<const SurveyedPicture> found, std::vector<std::string>& unreadable) const {
    std::vector<std::string> lonely, bad;
    std::size_t fewest = data.members().empty() ? 0 : data.members().front().size(), most = fewest;
    for (std::size_t c = 0; c < data.members().size(); ++c) {
      const std::size_t count = data.members()[c].size();
      fewest = std::min(fewest, count);
      most = std::max(most, count);
      const std::string& name = data.classes()[c].name;
      if ((is_side(split) ? of_both_sides_.at(name) : count) == 1) lonely.push_back(name);
    }
    std::vector<SurveyedPicture> readable;
    std::int64_t lying = 0;
    for (const SurveyedPicture& picture : found) {
      if (!picture.problem.empty()) {
        bad.push_back(picture.problem);
      } else {
        readable.push_back(picture);
        lying += picture.orientation == kUpright ? 0 : 1;
      }
    }
    print("{}, {}: {}, {} in each\n", one_line(spec.text()), data.part(), counts_text(data),
          fewest == most ? fmt::format("{}", fewest) : fmt::format("{} to {}", fewest, most));
    json out = {{"part", data.part()},
                {"images", data.size()},
                {"classes", data.classes().size()},
                {"categories", data.categories().size()},
                {"fewest_in_a_class", fewest},
                {"most_in_a_class", most},
                {"classes_of_one_image", lonely},
                {"lying", lying},
                {"unreadable", bad.size()}};
    if (!readable.empty()) {
      const auto [small, large] =
          std::minmax_element(readable.begin(), readable.end(),
                              [](const auto& a, const auto& b) { return pixels(a) < pixels(b); });
      print("  pixels: {} wide, {} high\n", range_of(readable, &SurveyedPicture::width),
            range_of(readable, &SurveyedPicture::height));
      out["smallest"] = {small->width, small->height};
      out["largest"] = {large->width, large->height};
    }
    if (lying > 0) {
      print("  stored rotated or mirrored (EXIF): {}, {}\n", lying,
            spec.get("exif", "") == "turn" ? "turned upright by exif=turn"
                                           : "used as stored; ,exif=turn turns them upright");
    }
    if (!data.left_out().empty()) {
      print("  left out: {}\n", one_line(text_of(data.left_out())));
      out["left_out"] = text_of(data.left_out());
    }
    if (data.is_one_class() && !is_side(split)) {
      print("  all of it is one class: {}\n",
            split == Split::kTrain ? "there is nothing to tell apart, and no loss learns from it"
                                   : "whatever is found is right, and its metrics mean nothing");
    }
    if (!lonely.empty()) {
      print(
          "  {} of a single image, which has no other to find{} (min_images=2 leaves such out):\n",
          counted(lonely.size(), "class"),
          split == Split::kTrain ? ", and which training refuses" : "");
      print_some(lonely);
    }
    if (!bad.empty()) {
      print("  cannot be read, {} of them:\n", bad.size());
      print_some(bad);
    }
    unreadable.insert(unreadable.end(), bad.begin(), bad.end());
    return out;
  }

  void remember(const Dataset& data, std::span<const SurveyedPicture> found) {
    for (const SurveyedPicture& picture : found) {
      const std::string path = data.item_name(picture.index);
      seen_.insert(path);
      if (!picture.problem.empty()) continue;
      places_[picture.content].push_back(
          {path, data.part(), data.classes()[at(data.label(picture.index))].name});
    }
  }

  // Groups of files with the same bytes, as lists of their paths.
  json tell_equal_files() const {
    json out = json::array();
    std::vector<std::string> lines;
    std::int64_t classes = 0, splits = 0;
    for (const auto& [content, places] : places_) {
      if (places.size() < 2) continue;
      std::set<std::string> in_classes, in_splits;
      json paths = json::array();
      std::string line;
      for (const Place& place : places) {
        in_classes.insert(place.of_class);
        in_splits.insert(place.split);
        paths.push_back(place.path);
        line += (line.empty() ? "" : " = ") + place.path;
      }
      out.push_back(std::move(paths));
      classes += in_classes.size() > 1 ? 1 : 0;
      splits += in_splits.size() > 1 ? 1 : 0;
      lines.push_back(std::move(line));
    }
    if (lines.empty()) return out;
    print(
        "groups of files with equal content: {} (in different classes {}, in different splits "
        "{})\n",
        lines.size(), classes, splits);
    print_some(lines);
    return out;
  }

  std::string data_;
  std::set<std::string> seen_;
  std::map<std::string, std::size_t> of_both_sides_;  // images of a class in query and gallery
  std::map<std::array<std::uint8_t, 32>, std::vector<Place>> places_;
};

}  // namespace

std::unique_ptr<Command> make_probe_data() { return std::make_unique<ProbeData>(); }

}  // namespace rk
