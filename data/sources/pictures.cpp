#include "data/sources/pictures.h"

#include "data/sources/file_source.h"
#include "data/sources/folder_listing.h"
#include "engine/base/error.h"
#include "engine/system/read_file.h"

#include <filesystem>
#include <system_error>
#include <utility>

namespace rk {

Dataset read_pictures(const std::vector<std::string>& files_and_folders, bool turn) {
  std::vector<DataItem> items;
  LeftOut left_out;
  for (const std::string& path : files_and_folders) {
    if (!file_exists(path)) fail<InputError>("{}: is not there; check the path", path);
    std::error_code ignored;
    if (!std::filesystem::is_directory(path, ignored)) {
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
      items.push_back({(std::filesystem::path(path) / image).string(), 0, 0});
    }
  }
  Dataset data("pictures", std::move(items), {DataClass{}}, {}, make_file_source("", turn));
  data.set_left_out(std::move(left_out));
  return data;
}

}  // namespace rk
