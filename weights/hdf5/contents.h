// Describes the content of a file, for messages about missing data sets.
#pragma once

#include "weights/hdf5/file.h"

#include <string>

namespace rk {

// "it holds /features, /test/labels": its data sets, only the first ones if there are many.
std::string what_it_holds(const Hdf5Reader& file);

}  // namespace rk
