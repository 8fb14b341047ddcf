// Weights that Keras saved: HDF5, alone or inside a .keras archive. Names are "<group>/<leaf>" as
// in the file, without the groups that all of them share; of Keras 3 the layer's own name stands in
// front where the file says it: "conv1_conv/vars/0". Values are float32 (Keras's bfloat16 too).
#pragma once

#include "weights/tensor_files/archive_entries.h"
#include "weights/tensor_files/tensor_file.h"

namespace rk {

inline constexpr const char* kKerasWeights = "model.weights.h5";  // in a .keras archive

TensorFile read_keras_hdf5(std::span<const std::byte> bytes, const std::string& name);

// Of a zip archive of so many bytes that has kKerasWeights.
TensorFile read_keras_zip(const std::map<std::string, ArchiveEntry>& entries,
                          std::size_t archive_bytes, const std::string& name);

}  // namespace rk
