// probe --data SPEC: reports the content of a data set and its problems, before a run meets them.
//
// For each split: images, classes, categories; classes with a single image; sizes; pictures not
// stored upright (EXIF); files left out; pictures that cannot be read. Over all splits: files of
// equal content, and which of them lie in different classes or splits. --json lists all of them,
// standard output the first of each kind. Exit code 3 if a picture cannot be read.
#pragma once

#include "tools/cli/cli.h"

#include <memory>

namespace rk {

std::unique_ptr<Command> make_probe_data();

}  // namespace rk
