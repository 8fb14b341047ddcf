// A data set: items (one image each), their classes, and the categories of the classes.
// open_dataset.h opens one.
//
// A class with a single image is not an error here (evaluation counts such queries); samplers
// refuse such classes.
//
// The order of items matters (sampling and augmentation are keyed by index): it is that of names,
// compared byte by byte, never by locale or in the order that a file system returns. A folder's
// classes and categories come by their names, classes within a category and images within a class,
// too; where query and gallery are read together, classes without a category come first, and in
// each class the images of the query.
#pragma once

#include "data/images/image.h"
#include "data/spec.h"
#include "engine/base/integers.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rk {

// kQuery and kGallery: the two sides of a test, for data that separates them.
enum class Split { kTrain, kVal, kTest, kQuery, kGallery };
std::string_view name_of(Split split);
std::vector<std::string> split_names();  // of all splits, in the order above

// Content of the data set that is not used.
struct LeftOut {
  std::map<std::string, std::int64_t> files;  // not readable images; count by file ending
  std::vector<std::string> empty_folders;     // in the place of a class
  std::vector<std::string> small_classes;     // dropped by min_images
  bool empty() const { return files.empty() && empty_folders.empty() && small_classes.empty(); }
};
std::string text_of(const std::map<std::string, std::int64_t>& files);  // "812 .heic, 3 .mp4"
// "files that are no images it reads: 812 .heic; 2 empty folders ('c1', 'c7'); 1 class below
// min_images ('c9')"
std::string text_of(const LeftOut& left_out);

struct DataItem {
  std::string path;        // below the data set's root; empty for drawn images
  std::int64_t key = 0;    // which drawing, for drawn images
  std::int64_t label = 0;  // position in classes()
};

struct DataClass {
  std::string name;
  std::int64_t category = -1;            // position in categories(), -1: none
  std::vector<std::string> merged = {};  // names of the classes merged into it; empty: not merged
};

// Loads the pixels. Thread-safe.
class ImageSource {
 public:
  virtual ~ImageSource() = default;
  virtual Image load(const DataItem& item, const DataClass& of) const = 0;
  // The item's name in messages.
  virtual std::string name(const DataItem& item, const DataClass& of) const = 0;
  // How many pictures load() has returned that are not upright according to their EXIF data
  // (data/images/exif.h).
  virtual std::int64_t rotated() const { return 0; }
  // The settings from the spec that change the pixels of a picture of a given name: the parameters
  // of a generator, or the processing of files. Empty: none.
  virtual std::string drawn_by() const { return ""; }
};

class Dataset {
 public:
  // `name` (the folder, or "glyphs") begins messages about the whole set.
  Dataset(std::string name, std::vector<DataItem> items, std::vector<DataClass> classes,
          std::vector<std::string> categories, std::shared_ptr<const ImageSource> source);

  const std::string& name() const { return name_; }
  std::int64_t size() const { return static_cast<std::int64_t>(items_.size()); }
  const std::vector<DataItem>& items() const { return items_; }
  const std::vector<DataClass>& classes() const { return classes_; }
  const std::vector<std::string>& categories() const { return categories_; }
  // The names of classes(), followed by the names of the classes merged into them.
  std::vector<std::string> class_names() const;
  // The items of each class, ascending.
  const std::vector<std::vector<std::int64_t>>& members() const { return members_; }
  // Whether all images are of one class, so that there is nothing to tell apart.
  bool is_one_class() const;
  std::int64_t label(std::int64_t index) const { return item(index).label; }
  std::int64_t category(std::int64_t index) const;  // -1: none

  Image load(std::int64_t index) const;  // InputError that names the file
  std::string item_name(std::int64_t index) const;
  std::int64_t rotated() const { return source_->rotated(); }  // ImageSource::rotated()

  // Which part of the data this is, for messages: "split test", "the whole set (no splits)".
  const std::string& part() const { return part_; }
  void set_part(std::string part) { part_ = std::move(part); }
  const LeftOut& left_out() const { return left_out_; }
  void set_left_out(LeftOut files) { left_out_ = std::move(files); }

  // A hash of names, labels, order and ImageSource::drawn_by(): a resumed run must see the same
  // data. The content of files is not included.
  std::uint64_t fingerprint() const;
  // "352 images 0123456789abcdef": the number of images and the fingerprint, as recorded in
  // checkpoints.
  std::string identity() const;

  // Keeps only the images of these classes (ascending positions) and renumbers the classes.
  Dataset select(const std::vector<std::int64_t>& classes) const;

  // Keeps all images and merges every `each` consecutive classes of a category into one class,
  // named a+b+c, which then has several centres; the last merged class of a category also takes the
  // classes left over.
  Dataset merge(std::int64_t each) const;

 private:
  const DataItem& item(std::int64_t index) const { return items_[at(index)]; }

  std::string name_;
  std::vector<DataItem> items_;
  std::vector<DataClass> classes_;
  std::vector<std::string> categories_;
  std::vector<std::vector<std::int64_t>> members_;
  std::string part_;
  LeftOut left_out_;
  std::shared_ptr<const ImageSource> source_;
};

// "352 images of 44 classes in 3 categories". of: what a class is called.
std::string counts_text(const Dataset& data, const char* of = "class");

}  // namespace rk
