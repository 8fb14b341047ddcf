// probe --data SPEC: what a data set holds and what is wrong with it, before a run finds out.
//
// Of each split: images, classes, categories; classes with a single image; sizes; pictures stored
// lying (EXIF); files left out; pictures that cannot be read. Over all splits: files of equal
// content, and which of them lie in different classes or splits. --json lists all of them, standard
// output the first of each. Exit code 3 where a picture cannot be read.
#pragma once

#include <memory>

#include "tools/cli/cli.h"

namespace rk {

std::unique_ptr<Command> make_probe_data();

}  // namespace rk
