// Whose an HDF5 file is: results carry the attribute written_by, "Rankine <version>", at their
// root. Others write /embeddings too.
#pragma once

#include "weights/hdf5/file.h"

namespace rk {

void sign(Hdf5Writer& file);
// Only of this version and later: what earlier ones wrote beside checkpoints was not signed.
bool is_signed(const Hdf5Reader& file);

}  // namespace rk
