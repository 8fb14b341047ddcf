// What a file holds, for whoever did not find in it what was looked for.
#pragma once

#include "weights/hdf5/file.h"

#include <string>

namespace rk {

// "it holds /features, /test/labels": its data sets, the first of them where they are many.
std::string what_it_holds(const Hdf5Reader& file);

}  // namespace rk
