#include "data/sources/file_source.h"

#include "data/images/exif.h"

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <utility>

namespace rk {
namespace {

class FileSource : public ImageSource {
 public:
  FileSource(std::string root, bool turn) : root_(std::move(root)), turn_(turn) {}
  Image load(const DataItem& item, const DataClass& of) const override {
    Photo photo = read_photo(name(item, of), turn_);
    if (!turn_ && photo.orientation != kUpright) rotated_.fetch_add(1, std::memory_order_relaxed);
    return std::move(photo.image);
  }
  std::string name(const DataItem& item, const DataClass&) const override {
    return (std::filesystem::path(root_) / item.path).string();
  }
  std::int64_t rotated() const override { return rotated_.load(std::memory_order_relaxed); }
  std::string drawn_by() const override { return turn_ ? "exif=turn" : ""; }

 private:
  std::string root_;
  bool turn_;
  mutable std::atomic<std::int64_t> rotated_{0};
};

}  // namespace

std::shared_ptr<const ImageSource> make_file_source(std::string root, bool turn) {
  return std::make_shared<FileSource>(std::move(root), turn);
}

}  // namespace rk
