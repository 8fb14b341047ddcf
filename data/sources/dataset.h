// A data set: items (an image each), their classes and the classes' categories.
//
// Splits. Retrieval splits hold different classes. A data set either has splits of its own (a
// folder with train/ and test/, glyphs, the published sets) or is flat: then all of it is `train`
// and all of it is `test`, by the caller's choice. Options that every kind knows:
//   val_classes=0.2       hold this share of the training classes out (at least one, never all):
//                         `train` is the rest, `val` the held-out ones; a flat set then has no
//                         `test`
//   val_order=default     the last classes of the table; random: drawn with val_seed=0
//   min_images=1          leave out classes with fewer images, those of query and gallery together
// A class with a single image is no error here (evaluation counts such queries); samplers refuse
// it.
//
// The order of items is part of the meaning (sampling and augmentation are keyed by it): by
// category, class and name, compared byte by byte, never by locale or by the order a file system
// returns.
#pragma once

#include "data/images/image.h"
#include "data/spec.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rk {

// kQuery and kGallery: the two sides of a test, where the data has them apart.
enum class Split { kTrain, kVal, kTest, kQuery, kGallery };
std::string_view name_of(Split split);
// By any name that folder.h knows, in large or small letters; UsageError.
Split parse_split(std::string_view name);

// What is there and is not used.
struct LeftOut {
  std::map<std::string, std::int64_t> files;  // that are no images it reads, by their endings
  std::vector<std::string> empty_folders;     // where a class would be
  std::vector<std::string> small_classes;     // by min_images
  bool empty() const { return files.empty() && empty_folders.empty() && small_classes.empty(); }
};
std::string text_of(const std::map<std::string, std::int64_t>& files);  // "812 .heic, 3 .mp4"
// "files that are no images it reads: 812 .heic; 2 empty folders ('c1', 'c7'); 1 class below
// min_images ('c9')"
std::string text_of(const LeftOut& left_out);

struct DataItem {
  std::string path;        // below the data set's root; empty where images are drawn
  std::int64_t key = 0;    // which drawing, where images are drawn
  std::int64_t label = 0;  // position in classes()
};

struct DataClass {
  std::string name;
  std::int64_t category = -1;            // position in categories(), -1: none
  std::int64_t key = 0;                  // which character, where images are drawn
  std::vector<std::string> merged = {};  // the names of those it was merged of; empty: it is itself
};

// Where the pixels come from. Thread-safe.
class ImageSource {
 public:
  virtual ~ImageSource() = default;
  virtual Image load(const DataItem& item, const DataClass& of) const = 0;
  // What messages call the item.
  virtual std::string name(const DataItem& item, const DataClass& of) const = 0;
  // How many that load() gave so far are not upright, by what their files say of it
  // (data/images/exif.h).
  virtual std::int64_t rotated() const { return 0; }
  // What pictures of the same names may differ in, as far as the spec says it: what a generator
  // draws by, what is done to files. Empty: nothing.
  virtual std::string drawn_by() const { return ""; }
};

class Dataset {
 public:
  // `name` begins the messages about the set as a whole: its folder, or "glyphs".
  Dataset(std::string name, std::vector<DataItem> items, std::vector<DataClass> classes,
          std::vector<std::string> categories, std::shared_ptr<const ImageSource> source);

  const std::string& name() const { return name_; }
  std::int64_t size() const { return static_cast<std::int64_t>(items_.size()); }
  const std::vector<DataItem>& items() const { return items_; }
  const std::vector<DataClass>& classes() const { return classes_; }
  const std::vector<std::string>& categories() const { return categories_; }
  // The names of classes(), then those of the classes that were merged into them.
  std::vector<std::string> class_names() const;
  // The items of each class, ascending.
  const std::vector<std::vector<std::int64_t>>& members() const { return members_; }
  std::int64_t label(std::int64_t index) const { return item(index).label; }
  std::int64_t category(std::int64_t index) const;  // -1: none

  Image load(std::int64_t index) const;  // InputError that names the file
  std::string item_name(std::int64_t index) const;
  std::int64_t rotated() const { return source_->rotated(); }  // ImageSource::rotated()

  // Which part of the whole it is: "split test"; "all of it, which has no splits".
  const std::string& part() const { return part_; }
  void set_part(std::string part) { part_ = std::move(part); }
  const LeftOut& left_out() const { return left_out_; }
  void set_left_out(LeftOut files) { left_out_ = std::move(files); }

  // Changes with any name, label or order, and with what the pictures are drawn by: a resumed run
  // must see the same data. What files hold is not looked at.
  std::uint64_t fingerprint() const;
  // "352 images 0123456789abcdef": their number and that, as checkpoints record it.
  std::string identity() const;

  // The same images with only these classes (ascending positions), renumbered.
  Dataset select(const std::vector<std::int64_t>& classes) const;

  // The same images, every `each` classes that follow one another in a category made one of several
  // centres, named a+b+c; the last one of a category takes those left over as well.
  Dataset merge(std::int64_t each) const;

 private:
  const DataItem& item(std::int64_t index) const { return items_[static_cast<std::size_t>(index)]; }

  std::string name_;
  std::vector<DataItem> items_;
  std::vector<DataClass> classes_;
  std::vector<std::string> categories_;
  std::vector<std::vector<std::int64_t>> members_;
  std::string part_;
  LeftOut left_out_;
  std::shared_ptr<const ImageSource> source_;
};

// One registry of kinds (dataset.cpp): their names, and the help text of --data, a line a kind.
std::vector<std::string> dataset_kinds();
std::string dataset_help();

// parse_data_spec() with what people write: ~/ at the front of a path is the home folder, and the
// path of a folder alone means folder:PATH.
DataSpec read_data_spec(std::string_view text);

// The splits that hold different classes, to find what to evaluate on while training: {train, val},
// {train, test}, ...; a flat set without val_classes has {train} alone.
std::vector<Split> dataset_splits(const DataSpec& spec);

Dataset open_dataset(const DataSpec& spec, Split split);
Dataset open_dataset(std::string_view spec, Split split);

}  // namespace rk
