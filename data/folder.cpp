#include "data/folder.h"

#include "data/decode.h"
#include "engine/error.h"
#include "engine/nearest.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <string>
#include <utility>

namespace rk {
namespace {

namespace fs = std::filesystem;

constexpr std::array kSplits{Split::kTrain, Split::kVal, Split::kTest};

class FileSource : public ImageSource {
 public:
  explicit FileSource(std::string root) : root_(std::move(root)) {}
  Image load(const DataItem& item, const DataClass& of) const override {
    return read_image(name(item, of));
  }
  std::string name(const DataItem& item, const DataClass&) const override {
    return (fs::path(root_) / item.path).string();
  }

 private:
  std::string root_;
};

bool is_image_name(const std::string& name) {
  static constexpr std::array<std::string_view, 10> kEndings{"jpg",  "jpeg", "png",  "bmp", "gif",
                                                             "webp", "tif",  "tiff", "ppm", "pgm"};
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos) return false;
  std::string ending = name.substr(dot + 1);
  for (char& c : ending) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end();
}

// What a folder holds, each sorted by bytes.
struct Listing {
  std::vector<std::string> folders;
  std::vector<std::string> images;
  std::int64_t other_files = 0;
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
      if (status.type() == fs::file_type::directory) {
        listing.folders.push_back(name);
      } else if (!is_image_name(name)) {
        ++listing.other_files;
      } else if (status.type() == fs::file_type::regular ||
                 status.type() == fs::file_type::not_found) {
        // A link into nowhere stays an image: reading it says what is wrong, as for any bad file.
        listing.images.push_back(name);
      } else if (error) {
        fail<InputError>("{}: cannot be looked at ({}); check its permissions",
                         entry.path().string(), error.message());
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

std::vector<Split> split_folders(const Listing& root) {
  std::vector<Split> splits;
  for (const Split split : kSplits) {
    if (std::find(root.folders.begin(), root.folders.end(), split_name(split)) !=
        root.folders.end()) {
      splits.push_back(split);
    }
  }
  return splits.size() == root.folders.size() ? splits : std::vector<Split>{};
}

// A class folder that was found: its path below the base, its category ("": none), what it holds.
struct ClassFolder {
  std::string path;
  std::string category;
  Listing listing;
};

// Every class below `base` (the root or a split's folder).
std::vector<ClassFolder> find_classes(const fs::path& base) {
  std::vector<ClassFolder> classes;
  const Listing top = list_folder(base);
  if (top.folders.empty()) {
    fail<InputError>("{}: no class folders in it{}; expected [split/][category/]class/image",
                     base.string(),
                     top.images.empty() ? "" : fmt::format(" but {} images", top.images.size()));
  }
  const auto add_class = [&](std::string path, std::string category, Listing listing) {
    if (listing.images.empty()) {
      fail<InputError>("{}: a class without images{}; add some or remove the folder",
                       (base / path).string(),
                       listing.other_files == 0
                           ? ""
                           : fmt::format(" ({} files of other kinds)", listing.other_files));
    }
    classes.push_back({std::move(path), std::move(category), std::move(listing)});
  };
  if (!top.images.empty()) {
    fail<InputError>("{}: the image '{}' lies beside folders; put it into a class", base.string(),
                     top.images.front());
  }
  for (const std::string& name : top.folders) {
    Listing inside = list_folder(base / name);
    if (inside.folders.empty()) {
      add_class(name, "", std::move(inside));
      continue;
    }
    if (!inside.images.empty()) {
      fail<InputError>(
          "{}: images beside the folder '{}'; a class holds images, a category folders",
          (base / name).string(), inside.folders.front());
    }
    for (const std::string& below : inside.folders) {
      const std::string path = (fs::path(name) / below).string();
      Listing leaf = list_folder(base / path);
      if (!leaf.folders.empty()) {
        fail<InputError>("{}: folders too deep; expected [split/][category/]class/image",
                         (base / path / leaf.folders.front()).string());
      }
      add_class(path, name, std::move(leaf));
    }
  }
  return classes;
}

// Only the categories asked for.
std::vector<ClassFolder> choose_categories(const DataSpec& spec, std::vector<ClassFolder> classes) {
  if (!spec.has("categories")) return classes;
  const std::vector<std::string> wanted = spec.list("categories");
  std::set<std::string> present;
  for (const ClassFolder& c : classes) present.insert(c.category);
  present.erase("");
  for (const std::string& name : wanted) {
    if (!present.contains(name)) {
      fail<InputError>("{}: no category '{}'; {}", spec.path, name,
                       present.empty() ? "its classes lie in no categories, leave the option out"
                                       : suggestion(name, {present.begin(), present.end()}));
    }
  }
  std::erase_if(classes, [&](const ClassFolder& c) {
    return std::find(wanted.begin(), wanted.end(), c.category) == wanted.end();
  });
  return classes;
}

// The classes of `split`, after looking at all splits: the classes of one are no classes of
// another. Retrieval measured on classes that were trained on looks too good, and nobody would
// notice.
std::vector<ClassFolder> find_disjoint(const fs::path& root, const std::vector<Split>& splits,
                                       Split split) {
  std::vector<ClassFolder> wanted;
  std::set<std::string> seen;
  for (const Split each : splits) {
    std::vector<ClassFolder> classes = find_classes(root / split_name(each));
    for (const ClassFolder& c : classes) {
      if (!seen.insert(c.path).second) {
        fail<InputError>(
            "{}: class '{}' is also in another split; give each class to one split, or give one of "
            "the folders alone, with val_classes=0.2",
            (root / split_name(each)).string(), c.path);
      }
    }
    if (each == split) wanted = std::move(classes);
  }
  return wanted;
}

}  // namespace

std::vector<Split> folder_splits(const DataSpec& spec) {
  check_root(spec);
  return split_folders(list_folder(spec.path));
}

Dataset read_folder(const DataSpec& spec, Split split) {
  const std::vector<Split> splits = folder_splits(spec);
  const fs::path root = spec.path;
  const fs::path base = splits.empty() ? root : root / split_name(split);
  std::vector<ClassFolder> folders =
      splits.empty() ? find_classes(root) : find_disjoint(root, splits, split);
  std::vector<DataItem> items;
  std::vector<DataClass> classes;
  std::vector<std::string> categories;
  for (ClassFolder& found : choose_categories(spec, std::move(folders))) {
    if (!found.category.empty() && (categories.empty() || categories.back() != found.category)) {
      categories.push_back(found.category);
    }
    const auto label = static_cast<std::int64_t>(classes.size());
    for (const std::string& image : found.listing.images) {
      items.push_back({(fs::path(found.path) / image).string(), 0, label});
    }
    const std::int64_t category =
        found.category.empty() ? -1 : static_cast<std::int64_t>(categories.size()) - 1;
    classes.push_back({std::move(found.path), category, 0});
  }
  return Dataset(base.string(), std::move(items), std::move(classes), std::move(categories),
                 std::make_shared<FileSource>(base.string()));
}

}  // namespace rk
