// What a file holds beside rows, one of each: labels or cameras.
#pragma once

#include <span>
#include <string>

namespace rk {

class Hdf5Reader;

struct RowValue {
  std::string noun;                    // as messages call one of them: "label"
  std::span<const std::string> usual;  // usual names of arrays and columns of them, in lower case
  // The data set of an HDF5 file where they are looked for.
  std::string (*data_set)(const Hdf5Reader& file);
};

}  // namespace rk
