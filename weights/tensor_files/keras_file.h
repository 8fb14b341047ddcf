// Weights saved by Keras: HDF5, alone or inside a .keras archive. Names are "<group>/<leaf>" as in
// the file, without the groups shared by all; in Keras 3 the layer's own name comes first if the
// file states it: "conv1_conv/vars/0". Values become float32. Data sets that are not read (of
// another type, or of more dimensions) are left out, with a note.
#pragma once

#include "weights/tensor_files/archive_entries.h"
#include "weights/tensor_files/tensor_file.h"

namespace rk {

inline constexpr const char* kKerasWeights = "model.weights.h5";  // in a .keras archive

TensorFile read_keras_hdf5(std::span<const std::byte> bytes, const std::string& name);

// From a zip archive of `archive_bytes` that has kKerasWeights.
TensorFile read_keras_zip(const std::map<std::string, ArchiveEntry>& entries,
                          std::size_t archive_bytes, const std::string& name);

}  // namespace rk
