// Marks HDF5 results as Rankine's: their root has the attribute written_by, "Rankine <version>".
// Other programs write /embeddings too.
#pragma once

#include "weights/hdf5/file.h"

namespace rk {

void sign(Hdf5Writer& file);
// Whether the file has this mark; results of versions before this one do not have it.
bool is_signed(const Hdf5Reader& file);

}  // namespace rk
