#include "data/sources/folder_listing.h"

#include "engine/base/error.h"
#include "engine/base/lower_case.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <system_error>

namespace rk {
namespace {

namespace fs = std::filesystem;

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

}  // namespace

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

void add(const std::map<std::string, std::int64_t>& files, LeftOut& to) {
  for (const auto& [ending, count] : files) to.files[ending] += count;
}

}  // namespace rk
