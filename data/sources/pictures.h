// Pictures to look up (eval --query): files given one by one or by the folder, without classes.
#pragma once

#include "data/sources/dataset.h"

#include <string>
#include <vector>

namespace rk {

// Reads the given pictures, and all pictures directly in the given folders (sorted by name), as one
// class without a meaning. `turn`: as exif=turn of folder.h. Throws InputError if a file is missing
// or a folder holds no pictures.
Dataset read_pictures(const std::vector<std::string>& files_and_folders, bool turn);

}  // namespace rk
