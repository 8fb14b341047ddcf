#include "data/sources/folder_splits.h"

#include "data/sources/folder_listing.h"
#include "engine/base/error.h"
#include "engine/base/lower_case.h"
#include "engine/base/nearest.h"
#include "engine/base/note.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <system_error>
#include <utility>

namespace rk {
namespace {

namespace fs = std::filesystem;

void check_root(const DataSpec& spec) {
  if (spec.path.empty()) fail<UsageError>("folder: no path given; write folder:path/to/images");
  std::error_code error;
  const fs::file_status status = fs::status(spec.path, error);
  if (status.type() == fs::file_type::not_found) {
    fail<InputError>("{}: no such folder; check the path", spec.path);
  }
  if (error) {
    fail<InputError>("{}: cannot be opened ({}); check the path", spec.path, error.message());
  }
  if (status.type() != fs::file_type::directory) {
    fail<InputError>("{}: not a folder; give the folder that holds the classes", spec.path);
  }
}

std::string quoted(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i) {
    text += fmt::format("{}'{}'", i == 0 ? "" : ", ", names[i]);
  }
  if (names.size() > kMost) text += fmt::format(" and {} more", names.size() - kMost);
  return text;
}

// Advice if one of the folders has a name near that of a split; empty: none has.
std::string misspelt_split(const std::vector<std::string>& folders) {
  std::vector<std::string> known = split_names();
  known.emplace_back("validation");
  for (const std::string& folder : folders) {
    const std::vector<std::string> near = nearest(folder, known, 1);
    if (!near.empty()) return fmt::format("rename '{}' to '{}', or ", folder, near.front());
  }
  return "";
}

}  // namespace

std::optional<Split> split_of_folder(const std::string& name) {
  static const std::map<std::string, Split> kNames{
      {"train", Split::kTrain},    {"training", Split::kTrain}, {"val", Split::kVal},
      {"validation", Split::kVal}, {"valid", Split::kVal},      {"dev", Split::kVal},
      {"test", Split::kTest},      {"testing", Split::kTest},   {"query", Split::kQuery},
      {"queries", Split::kQuery},  {"gallery", Split::kGallery}};
  const auto found = kNames.find(lower_case(name));
  return found == kNames.end() ? std::nullopt : std::optional(found->second);
}

SplitFolders split_folders(const DataSpec& spec) {
  check_root(spec);
  const std::string asked = spec.get("splits", "auto");
  if (asked != "auto" && asked != "none") {
    fail<UsageError>("folder: splits={} is neither auto nor none", asked);
  }
  if (asked == "none") return {};
  const Listing root = list_folder(spec.path);
  std::vector<SplitFolder> splits, hollow;
  std::vector<std::string> named, others;
  bool may_be_classes = true;  // a folder of images, without folders in it, whatever its name
  for (const std::string& folder : root.folders) {
    const std::optional<Split> split = split_of_folder(folder);
    if (!split) {
      others.push_back(folder);
      continue;
    }
    const Listing inside = list_folder(fs::path(spec.path) / folder);
    (inside.empty() ? hollow : splits).push_back({*split, folder});
    if (inside.empty()) continue;
    named.push_back(folder);
    may_be_classes = may_be_classes && inside.folders.empty() && !inside.images.empty();
  }
  // Beside nothing else, reading an empty one says that it is empty.
  if (splits.empty() && others.empty()) splits.swap(hollow);
  if (splits.empty()) return {};
  if (!others.empty()) {
    if (may_be_classes) {
      const bool one = named.size() == 1;
      note_first("splits as classes",
                 fmt::format("{}: {} {}, beside {}, so {}; a split holds a folder for each class",
                             spec.path, quoted(named),
                             one ? "holds images itself" : "hold images themselves", quoted(others),
                             one ? "it is taken for a class" : "they are taken for classes"));
      return {};
    }
    fail<InputError>(
        "{}: {} would be a split, {} would be none; if these are splits, {}move {} out of the "
        "folder; if all of them are categories, add ,splits=none",
        spec.path, quoted(named), quoted(others), misspelt_split(others), quoted(others));
  }
  require_no_image_beside_folders(spec.path, root);
  std::sort(splits.begin(), splits.end(),
            [](const SplitFolder& a, const SplitFolder& b) { return a.split < b.split; });
  for (std::size_t i = 1; i < splits.size(); ++i) {
    if (splits[i].split != splits[i - 1].split) continue;
    fail<InputError>(
        "{}: '{}' and '{}' are both the split {}; put them together, or, if these are categories, "
        "add ,splits=none",
        spec.path, splits[i - 1].name, splits[i].name, name_of(splits[i].split));
  }
  return {std::move(splits), std::move(hollow), root.others};
}

bool is_for_test(Split split) {
  return split == Split::kTest || split == Split::kQuery || split == Split::kGallery;
}

std::vector<Split> folder_splits(const DataSpec& spec) {
  std::vector<Split> splits;
  for (const SplitFolder& folder : split_folders(spec).folders) splits.push_back(folder.split);
  const auto at = std::find_if(splits.begin(), splits.end(), is_for_test);
  // Query and gallery together are the test split if there is no test folder.
  if (at != splits.end() && *at != Split::kTest) splits.insert(at, Split::kTest);
  return splits;
}

}  // namespace rk
