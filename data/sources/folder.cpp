#include "data/sources/folder.h"

#include "data/images/decode.h"
#include "data/images/exif.h"
#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/lower_case.h"
#include "engine/base/nearest.h"
#include "engine/system/read_file.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

namespace rk {
namespace {

namespace fs = std::filesystem;

class FileSource : public ImageSource {
 public:
  FileSource(std::string root, bool turn) : root_(std::move(root)), turn_(turn) {}
  Image load(const DataItem& item, const DataClass& of) const override {
    const std::string path = name(item, of);
    std::vector<std::byte> file = read_file(path, kMaxImageFileBytes);
    Image image = decode_image(file, path);
    const int orientation = exif_orientation(file);
    if (orientation == kUpright) return image;
    file = {};  // free memory first: turning holds the picture twice
    if (turn_) return turn_upright(std::move(image), orientation);
    rotated_.fetch_add(1, std::memory_order_relaxed);
    return image;
  }
  std::string name(const DataItem& item, const DataClass&) const override {
    return (fs::path(root_) / item.path).string();
  }
  std::int64_t rotated() const override { return rotated_.load(std::memory_order_relaxed); }
  std::string drawn_by() const override { return turn_ ? "exif=turn" : ""; }

 private:
  std::string root_;
  bool turn_;
  mutable std::atomic<std::int64_t> rotated_{0};
};

bool turns(const DataSpec& spec) {
  const std::string exif = spec.get("exif", "ignore");
  if (exif != "ignore" && exif != "turn") {
    fail<UsageError>("folder: exif={} is neither ignore nor turn; give one of them", exif);
  }
  return exif == "turn";
}

// The file name extension in lower case; empty: none.
std::string ending_of(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string::npos ? std::string() : lower_case(name.substr(dot + 1));
}

bool is_image_ending(const std::string& ending) {
  // The first six are read; the others are refused as pictures, not passed over.
  static constexpr std::array<std::string_view, 12> kEndings{
      "jpg", "jpeg", "jpe", "jfif", "png", "bmp", "gif", "webp", "tif", "tiff", "ppm", "pgm"};
  return std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end();
}

// Folders that archivers and file servers leave behind; never a class.
bool is_litter(const std::string& folder) {
  static constexpr std::array<std::string_view, 5> kNames{"__MACOSX", "@eaDir", "#recycle",
                                                          "$RECYCLE.BIN", "lost+found"};
  return std::find(kNames.begin(), kNames.end(), folder) != kNames.end();
}

// The content of a folder, each list sorted by bytes.
struct Listing {
  std::vector<std::string> folders;
  std::vector<std::string> images;
  std::map<std::string, std::int64_t> others;  // files of other kinds, by their endings
  bool empty() const { return folders.empty() && images.empty() && others.empty(); }
};

Listing list_folder(const fs::path& folder) {
  Listing listing;
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with('.')) continue;
      std::error_code error;
      const fs::file_status status = entry.status(error);
      if (error == std::errc::too_many_symbolic_link_levels) {
        fail<InputError>("{}: a link that leads back to itself; remove it", entry.path().string());
      }
      // It may be a class. A folder that may be listed but not entered refuses each of its entries.
      if (error && status.type() != fs::file_type::not_found) {
        fail<InputError>("{}: cannot be looked at ({}); check its permissions and its folder's",
                         entry.path().string(), error.message());
      }
      if (status.type() == fs::file_type::directory) {
        if (!is_litter(name)) listing.folders.push_back(name);
      } else if (const std::string ending = ending_of(name); !is_image_ending(ending)) {
        ++listing.others[ending];
      } else if (status.type() == fs::file_type::regular ||
                 status.type() == fs::file_type::not_found) {
        // A dangling link counts as an image: reading it gives the error, as for any bad file.
        listing.images.push_back(name);
      } else {
        fail<InputError>("{}: neither a file nor a folder; remove it", entry.path().string());
      }
    }
  } catch (const fs::filesystem_error& error) {
    fail<InputError>("{}: the folder cannot be read ({}); check the path and its permissions",
                     folder.string(), error.code().message());
  }
  std::sort(listing.folders.begin(), listing.folders.end());
  std::sort(listing.images.begin(), listing.images.end());
  return listing;
}

void require_no_image_beside_folders(const fs::path& folder, const Listing& listing) {
  if (listing.images.empty()) return;
  fail<InputError>("{}: the image '{}' lies beside folders; put it into a class", folder.string(),
                   listing.images.front());
}

void check_root(const DataSpec& spec) {
  if (spec.path.empty()) fail<UsageError>("folder: no path given; write folder:path/to/images");
  std::error_code error;
  const fs::file_status status = fs::status(spec.path, error);
  if (status.type() == fs::file_type::not_found) {
    fail<InputError>("{}: no such folder; check the path", spec.path);
  }
  if (error)
    fail<InputError>("{}: cannot be opened ({}); check the path", spec.path, error.message());
  if (status.type() != fs::file_type::directory) {
    fail<InputError>("{}: not a folder; give the folder that holds the classes", spec.path);
  }
}

struct SplitFolder {
  Split split;
  std::string name;
};

struct SplitFolders {
  std::vector<SplitFolder> folders;  // in the order of Split; empty: the root holds classes or
                                     // categories
  std::vector<std::string> hollow;   // named like splits, with nothing in them
  std::map<std::string, std::int64_t> others;  // files beside them, by their endings
};

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
  for (const std::string& folder : folders) {
    const std::vector<std::string> near =
        nearest(folder, {"train", "val", "test", "query", "gallery", "validation"}, 1);
    if (!near.empty()) return fmt::format("rename '{}' to '{}', or ", folder, near.front());
  }
  return "";
}

SplitFolders split_folders(const DataSpec& spec) {
  const std::string asked = spec.get("splits", "auto");
  if (asked != "auto" && asked != "none") {
    fail<UsageError>("folder: splits={} is neither auto nor none", asked);
  }
  if (asked == "none") return {};
  const Listing root = list_folder(spec.path);
  std::vector<SplitFolder> splits;
  std::vector<std::string> named, others;
  for (const std::string& folder : root.folders) {
    const std::optional<Split> split = split_of_folder(folder);
    (split ? named : others).push_back(folder);
    if (split) splits.push_back({*split, folder});
  }
  if (splits.empty()) return {};
  if (!others.empty()) {
    // A folder of images, without folders in it, is a class, whatever its name.
    if (std::all_of(named.begin(), named.end(), [&](const std::string& folder) {
          const Listing inside = list_folder(fs::path(spec.path) / folder);
          return inside.folders.empty() && !inside.images.empty();
        })) {
      return {};
    }
    fail<InputError>(
        "{}: {} would be a split, {} would be none; if these are splits, {}move {} out of the "
        "folder; if all of them are categories, add ,splits=none",
        spec.path, quoted(named), quoted(others), misspelt_split(others), quoted(others));
  }
  require_no_image_beside_folders(spec.path, root);
  // If all are hollow, reading one of them says so.
  std::vector<std::string> hollow;
  for (const SplitFolder& each : splits) {
    if (list_folder(fs::path(spec.path) / each.name).empty()) hollow.push_back(each.name);
  }
  if (hollow.size() == splits.size()) hollow.clear();
  std::erase_if(splits, [&](const SplitFolder& each) {
    return std::find(hollow.begin(), hollow.end(), each.name) != hollow.end();
  });
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

// Test, query and gallery may share classes.
bool is_for_test(Split split) {
  return split == Split::kTest || split == Split::kQuery || split == Split::kGallery;
}

std::vector<Split> splits_of(const std::vector<SplitFolder>& folders) {
  std::vector<Split> splits;
  for (const SplitFolder& folder : folders) splits.push_back(folder.split);
  const auto at = std::find_if(splits.begin(), splits.end(), is_for_test);
  // Query and gallery together are the test split if there is no test folder.
  if (at != splits.end() && *at != Split::kTest) splits.insert(at, Split::kTest);
  return splits;
}

// A class: its path relative to the base (the root or the folder of a split), its category ("":
// none), and the paths of its images relative to the base.
struct ClassFolder {
  std::string path;
  std::string category;
  std::vector<std::string> images;
};

struct FoundClasses {
  std::vector<ClassFolder> classes;
  LeftOut left_out;
};

void add(const std::map<std::string, std::int64_t>& files, LeftOut& to) {
  for (const auto& [ending, count] : files) to.files[ending] += count;
}

void add(const LeftOut& more, LeftOut& to) {
  add(more.files, to);
  to.empty_folders.insert(to.empty_folders.end(), more.empty_folders.begin(),
                          more.empty_folders.end());
}

constexpr const char* kMoveUp = "move them up";

// too_deep: what to do about folders below the classes.
FoundClasses find_classes(const fs::path& base, const char* too_deep = kMoveUp) {
  FoundClasses found;
  const Listing top = list_folder(base);
  add(top.others, found.left_out);
  if (top.folders.empty()) {
    fail<InputError>(
        "{}: no class folders in it{}; expected [split/][category/]class/image", base.string(),
        top.images.empty() ? "" : fmt::format(" but {}", counted(top.images.size(), "image")));
  }
  const auto add_class = [&](const std::string& path, std::string category,
                             const Listing& listing) {
    if (listing.empty()) {
      found.left_out.empty_folders.push_back(path);
      return;
    }
    if (listing.images.empty()) {
      fail<InputError>(
          "{}: a class without images ({}); add some, by names that end in .jpg, .png or .bmp, or "
          "remove the folder",
          (base / path).string(), text_of(listing.others));
    }
    add(listing.others, found.left_out);
    ClassFolder one{path, std::move(category), {}};
    for (const std::string& image : listing.images) {
      one.images.push_back((fs::path(path) / image).string());
    }
    found.classes.push_back(std::move(one));
  };
  require_no_image_beside_folders(base, top);
  for (const std::string& name : top.folders) {
    const Listing inside = list_folder(base / name);
    if (inside.folders.empty()) {
      add_class(name, "", inside);
      continue;
    }
    if (!inside.images.empty()) {
      fail<InputError>(
          "{}: has images ('{}') and folders ('{}'), and is neither a class, which holds images, "
          "nor "
          "a category, which holds classes; move the images into a folder or the folder elsewhere",
          (base / name).string(), inside.images.front(), inside.folders.front());
    }
    add(inside.others, found.left_out);
    for (const std::string& leaf_name : inside.folders) {
      const std::string path = (fs::path(name) / leaf_name).string();
      const Listing leaf = list_folder(base / path);
      if (!leaf.folders.empty()) {
        fail<InputError>("{}: folders too deep; expected [split/][category/]class/image, {}",
                         (base / path / leaf.folders.front()).string(), too_deep);
      }
      add_class(path, name, leaf);
    }
  }
  if (found.classes.empty()) {
    fail<InputError>("{}: its folders are empty; expected [split/][category/]class/image",
                     base.string());
  }
  return found;
}

// Keeps the classes of the requested categories. Throws InputError if a category is not in
// `present` (those of all splits) or no class remains. `base`: the folder of the classes.
std::vector<ClassFolder> choose_categories(const DataSpec& spec, const fs::path& base,
                                           std::vector<ClassFolder> classes,
                                           const std::set<std::string>& present) {
  if (!spec.has("categories")) return classes;
  std::vector<std::string> wanted = spec.list("categories");
  // '+' separates names, and may be part of one.
  if (const std::string whole = spec.get("categories", ""); present.contains(whole)) {
    wanted = {whole};
  }
  for (const std::string& name : wanted) {
    if (!present.contains(name)) {
      fail<InputError>("{}: no category '{}'; {}", spec.path, name,
                       present.empty() ? "its classes lie in no categories, leave the option out"
                                       : suggestion(name, {present.begin(), present.end()}));
    }
  }
  std::set<std::string> here;
  for (const ClassFolder& c : classes) here.insert(c.category);
  std::erase_if(classes, [&](const ClassFolder& c) {
    return std::find(wanted.begin(), wanted.end(), c.category) == wanted.end();
  });
  if (classes.empty()) {
    fail<InputError>("{}: has none of the categories {}, but {}; name one of these, too",
                     base.string(), fmt::join(wanted, ", "), fmt::join(here, ", "));
  }
  return classes;
}

void add_categories(const std::vector<ClassFolder>& classes, std::set<std::string>& into) {
  for (const ClassFolder& c : classes) {
    if (!c.category.empty()) into.insert(c.category);
  }
}

// Adds `more`, whose images lie in `folder` below the base, to `into`: classes of the same path
// become one, and the result is sorted by category and path.
void merge(std::vector<ClassFolder> more, const fs::path& folder, std::vector<ClassFolder>& into) {
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < into.size(); ++i) places.emplace(into[i].path, i);
  for (ClassFolder& c : more) {
    for (std::string& image : c.images) image = (folder / image).string();
    const auto at = places.find(c.path);
    if (at == places.end()) {
      into.push_back(std::move(c));
    } else {
      std::vector<std::string>& images = into[at->second].images;
      images.insert(images.end(), c.images.begin(), c.images.end());
    }
  }
  std::sort(into.begin(), into.end(), [](const ClassFolder& a, const ClassFolder& b) {
    return std::tie(a.category, a.path) < std::tie(b.category, b.path);
  });
}

struct SplitClasses {
  FoundClasses found;
  fs::path base;
  std::set<std::string> categories;  // of all splits
};

// A class in two splits of which at most one is for testing.
struct SharedClass {
  std::string name, first, second;  // the class, and the folders of its splits
};

[[noreturn]] void refuse_shared(const fs::path& root, const std::vector<SharedClass>& shared) {
  const SharedClass& one = shared.front();
  std::string more;
  std::set<std::string> names;
  for (const SharedClass& each : shared) names.insert(each.name);
  if (const std::size_t others = names.size() - 1; others > 0) {
    more = fmt::format(", and {} {} in two splits", counted(others, "other class"),
                       others == 1 ? "is" : "are");
  }
  fail<InputError>(
      "{}: class '{}' is also in {}{}; give each class to one split, or give one of the folders "
      "alone, with val_classes=0.2",
      (root / one.second).string(), one.name, (root / one.first).string(), more);
}

// Returns the classes of `split`, after checking all splits: only test, query and gallery may share
// classes. Retrieval measured on training classes looks too good, and nobody would notice.
SplitClasses find_disjoint(const fs::path& root, const std::vector<SplitFolder>& folders,
                           Split split) {
  SplitClasses wanted{{}, root, {}};
  std::map<std::string, const SplitFolder*> seen;
  std::vector<SharedClass> shared;
  const bool has_test = std::any_of(folders.begin(), folders.end(), [](const SplitFolder& folder) {
    return folder.split == Split::kTest;
  });
  for (const SplitFolder& folder : folders) {
    FoundClasses found = find_classes(root / folder.name);
    add_categories(found.classes, wanted.categories);
    for (const ClassFolder& c : found.classes) {
      const auto [at, is_new] = seen.emplace(c.path, &folder);
      if (is_new || (is_for_test(at->second->split) && is_for_test(folder.split))) continue;
      shared.push_back({c.path, at->second->name, folder.name});
    }
    if (folder.split == split) {
      wanted.found = std::move(found);
      wanted.base = root / folder.name;
    } else if (split == Split::kTest && !has_test && is_for_test(folder.split)) {
      merge(std::move(found.classes), folder.name, wanted.found.classes);
      add(found.left_out, wanted.found.left_out);
    }
  }
  if (!shared.empty()) refuse_shared(root, shared);
  return wanted;
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

std::vector<Split> folder_splits(const DataSpec& spec) {
  check_root(spec);
  return splits_of(split_folders(spec).folders);
}

Dataset read_folder(const DataSpec& spec, Split split) {
  check_root(spec);
  const auto [splits, hollow, others] = split_folders(spec);
  const char* too_deep = spec.get("splits", "auto") == "none"
                             ? "where ,splits=none takes the splits for categories: leave it out"
                             : kMoveUp;
  auto [found, base, known] = splits.empty()
                                  ? SplitClasses{find_classes(spec.path, too_deep), spec.path, {}}
                                  : find_disjoint(spec.path, splits, split);
  add_categories(found.classes, known);
  if (!splits.empty() && split == splits.front().split) {  // once, not in every split
    add(others, found.left_out);
    for (const std::string& name : hollow) {
      found.left_out.empty_folders.push_back((fs::path(spec.path) / name).string());
    }
  }
  std::vector<DataItem> items;
  std::vector<DataClass> classes;
  std::vector<std::string> categories;
  for (ClassFolder& one : choose_categories(spec, base, std::move(found.classes), known)) {
    if (!one.category.empty() && (categories.empty() || categories.back() != one.category)) {
      categories.push_back(one.category);
    }
    const auto label = static_cast<std::int64_t>(classes.size());
    for (std::string& image : one.images) items.push_back({std::move(image), 0, label});
    const std::int64_t category =
        one.category.empty() ? -1 : static_cast<std::int64_t>(categories.size()) - 1;
    classes.push_back({std::move(one.path), category, 0});
  }
  Dataset data(base.string(), std::move(items), std::move(classes), std::move(categories),
               std::make_shared<FileSource>(base.string(), turns(spec)));
  data.set_left_out(std::move(found.left_out));
  return data;
}

Dataset read_pictures(const std::vector<std::string>& files_and_folders, bool turn) {
  std::vector<DataItem> items;
  LeftOut left_out;
  for (const std::string& path : files_and_folders) {
    std::error_code ignored;
    if (!fs::exists(path, ignored)) {
      fail<InputError>("{}: is not there; check the path", path);
    }
    if (!fs::is_directory(path, ignored)) {
      items.push_back({path, 0, 0});
      continue;
    }
    const Listing listing = list_folder(path);
    if (listing.images.empty()) {
      fail<InputError>(
          "{}: holds no pictures{}{}; give a picture or a folder with some", path,
          listing.others.empty() ? "" : fmt::format(" it reads ({})", text_of(listing.others)),
          listing.folders.empty() ? "" : ", and folders inside it are not searched");
    }
    add(listing.others, left_out);
    for (const std::string& image : listing.images) {
      items.push_back({(fs::path(path) / image).string(), 0, 0});
    }
  }
  Dataset data("pictures", std::move(items), {DataClass{}}, {},
               std::make_shared<FileSource>("", turn));
  data.set_left_out(std::move(left_out));
  return data;
}

}  // namespace rk
