// Pictures that are files: reads them, and turns them upright if asked to.
#pragma once

#include "data/sources/dataset.h"

#include <memory>
#include <string>

namespace rk {

// The path of an item is below `root`. turn: upright according to EXIF data (data/images/exif.h);
// else as stored, and those that are not upright are counted.
std::shared_ptr<const ImageSource> make_file_source(std::string root, bool turn);

}  // namespace rk
