// What lies in a folder of a data set. Errors are InputErrors that name the folder or the entry.
#pragma once

#include "data/sources/dataset.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace rk {

// The content of a folder, each list sorted by bytes.
struct Listing {
  std::vector<std::string> folders;
  std::vector<std::string> images;
  std::map<std::string, std::int64_t> others;  // files of other kinds, by their endings
  bool empty() const { return folders.empty() && images.empty() && others.empty(); }
};

// Leaves out names that begin with '.', and folders that archivers and file servers leave behind.
Listing list_folder(const std::filesystem::path& folder);

void require_no_image_beside_folders(const std::filesystem::path& folder, const Listing& listing);

// Counts files of other kinds among those that are left out.
void add(const std::map<std::string, std::int64_t>& files, LeftOut& to);

}  // namespace rk
