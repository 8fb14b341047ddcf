#include "data/sources/folder.h"

#include "data/sources/file_source.h"
#include "data/sources/folder_listing.h"
#include "data/sources/folder_splits.h"
#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/nearest.h"
#include "engine/base/note.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

namespace rk {
namespace {

namespace fs = std::filesystem;

bool turns(const DataSpec& spec) {
  const std::string exif = spec.get("exif", "ignore");
  if (exif != "ignore" && exif != "turn") {
    fail<UsageError>("folder: exif={} is neither ignore nor turn; give one of them", exif);
  }
  return exif == "turn";
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
      "{}: class '{}' is also in {}{}; give each class to one split (under another name if it is "
      "another thing), or give one of the folders alone, with val_classes=0.2",
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

// Splits that are taken for categories may share classes, which then are several.
void note_divided_classes(const DataSpec& spec, const std::vector<ClassFolder>& classes) {
  std::map<std::string, std::string> category_of;
  std::set<std::string> divided;
  std::string example;
  for (const ClassFolder& c : classes) {
    if (!split_of_folder(c.category)) continue;
    const std::string name = fs::path(c.path).filename().string();
    const auto [at, is_new] = category_of.emplace(name, c.category);
    if (is_new || !divided.insert(name).second) continue;
    if (example.empty()) example = fmt::format("'{}' in {} and {}", name, at->second, c.category);
  }
  if (divided.empty()) return;
  const std::size_t count = divided.size();
  note_first(
      "divided classes",
      fmt::format("{}: {} {} in several splits, as {}: with splits=none they are different "
                  "classes; leave it out if they are not",
                  spec.path, counted(count, "class name"), count == 1 ? "is" : "are", example));
}

}  // namespace

Dataset read_folder(const DataSpec& spec, Split split) {
  const auto [splits, hollow, others] = split_folders(spec);
  const char* too_deep = spec.get("splits", "auto") == "none"
                             ? "where ,splits=none takes the splits for categories: leave it out"
                             : kMoveUp;
  auto [found, base, known] = splits.empty()
                                  ? SplitClasses{find_classes(spec.path, too_deep), spec.path, {}}
                                  : find_disjoint(spec.path, splits, split);
  add_categories(found.classes, known);
  if (splits.empty()) note_divided_classes(spec, found.classes);
  if (!splits.empty() && split == splits.front().split) {  // once, not in every split
    add(others, found.left_out);
    for (const SplitFolder& folder : hollow) {
      found.left_out.empty_folders.push_back((fs::path(spec.path) / folder.name).string());
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
    classes.push_back({std::move(one.path), category});
  }
  Dataset data(base.string(), std::move(items), std::move(classes), std::move(categories),
               make_file_source(base.string(), turns(spec)));
  data.set_left_out(std::move(found.left_out));
  return data;
}

}  // namespace rk
