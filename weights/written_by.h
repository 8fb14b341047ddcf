// Marks results as Rankine's, since other programs write files of the same kinds.
#pragma once

#include "weights/hdf5/file.h"

#include <string>
#include <string_view>

namespace rk {

// HDF5: the root gets the attribute written_by, "Rankine <version>".
void sign(Hdf5Writer& file);
// Whether the file has this mark; results of versions before this one do not have it.
bool is_signed(const Hdf5Reader& file);

// Python: `text` with a comment as its last line that holds the SHA-256 of the lines before it.
std::string signed_python(const std::string& text);
// Whether nobody has changed what signed_python() returned.
bool is_unchanged_python(std::string_view text);

}  // namespace rk
