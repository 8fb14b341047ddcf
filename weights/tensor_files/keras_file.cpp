#include "weights/tensor_files/keras_file.h"

#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "weights/checkpoint.h"
#include "weights/hdf5/file.h"
#include "weights/hdf5/file_memory.h"
#include "weights/tensor_files/archive_entries.h"

#include <algorithm>

namespace rk {
namespace {

const std::string kModelWeights = "/model_weights";  // in a file of a whole model

StoredTensor tensor_of(std::vector<float> values, std::vector<std::int64_t> dims) {
  StoredTensor tensor;
  tensor.dims = std::move(dims);
  const auto owner = std::make_shared<const std::vector<float>>(std::move(values));
  tensor.bytes = std::as_bytes(std::span(*owner));
  tensor.owner = owner;
  return tensor;
}

// "layers/conv2d_3/vars/0", or with the layer's name in front if the group of variables states it,
// behind the path of a model inside another: "layers/functional/conv1_conv/vars/0".
std::string layer_name(const Hdf5Reader& file, std::string path, std::size_t prefix) {
  const std::size_t leaf = path.rfind('/');
  const std::string group = path.substr(0, leaf);
  if (group.ends_with("/vars")) {
    // On Windows, Keras 2.12 to 2.15 join the groups by backslashes, to the name of a single one.
    std::ranges::replace(path, '\\', '/');
    if (const auto name = file.text_attribute(group, "name"); name && !name->empty()) {
      const std::size_t layers = path.rfind("/layers/", leaf);
      const std::string model = layers != std::string::npos && layers > prefix
                                    ? path.substr(prefix, layers + 1 - prefix)
                                    : "";
      return model + *name + "/vars" + path.substr(leaf);
    }
  }
  return path.substr(prefix);
}

TensorFile read_hdf5(std::span<const std::byte> bytes, const std::string& name,
                     std::uint64_t room) {
  const Hdf5Reader hdf5(bytes, name, room);
  // A checkpoint ends in a seal, which the library cuts off when it opens the file for writing.
  if (hdf5.text_attribute("/", "format") == kCheckpointFormat) {
    fail<InputError>(
        "{}: is a checkpoint whose seal is gone: another program opened it for writing; use "
        "another copy, and open copies for reading (h5py: mode 'r')",
        printable(name));
  }
  TensorFile file;
  file.path = name;
  const std::vector<std::string> all = hdf5.datasets("/");
  const auto holds = [&](const char* path) {
    return std::find(all.begin(), all.end(), path) != all.end();
  };
  const bool embeddings = holds("/embeddings") && holds("/labels");
  file.kind = embeddings ? TensorFile::Kind::kEmbeddings : TensorFile::Kind::kKeras;
  file.format = embeddings ? "HDF5 embeddings" : "Keras HDF5";
  const bool whole_model = hdf5.has(kModelWeights);
  const std::string root = whole_model ? kModelWeights : "/";
  for (const char* attribute : {"keras_version", "backend"}) {
    if (const auto text = hdf5.text_attribute(root, attribute)) file.metadata[attribute] = *text;
  }
  std::vector<std::string> left;
  for (const std::string& path : hdf5.datasets(root)) {
    const std::string tensor = layer_name(hdf5, path, whole_model ? root.size() + 1 : 1);
    if (std::string why = hdf5.unread(path); !why.empty()) {
      left.push_back(printable(tensor));
      file.unread[tensor] = std::move(why);
      continue;
    }
    const Hdf5Reader::Info info = hdf5.info(path);
    if (info.kind != Hdf5Reader::Kind::kFloat) continue;
    file.tensors.push_back(tensor_of(hdf5.read<float>(path), info.dims));
    file.tensors.back().name = tensor;
  }
  if (!left.empty()) {
    file.notes.push_back(fmt::format("left out: {} of kinds that are not read: {}",
                                     counted(left.size(), "data set"), listed(left)));
  }
  return file;
}

}  // namespace

TensorFile read_keras_hdf5(std::span<const std::byte> bytes, const std::string& name) {
  return read_hdf5(bytes, name, memory_for_file(bytes.size()) - bytes.size());
}

TensorFile read_keras_zip(const std::map<std::string, ArchiveEntry>& entries,
                          std::size_t archive_bytes, const std::string& name) {
  const ArchiveEntry& weights = entries.at(kKerasWeights);
  // What remains after the archive and, if the entry was compressed, its unpacked bytes.
  const std::uint64_t most = memory_for_file(archive_bytes);
  const std::uint64_t held = archive_bytes + (weights.owner ? weights.bytes.size() : 0);
  TensorFile file = read_hdf5(weights.bytes, name, most - std::min(most, held));
  file.format = "Keras archive";
  return file;
}

}  // namespace rk
