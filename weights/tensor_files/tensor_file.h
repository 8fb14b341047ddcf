// A file of tensors that somebody else wrote, read without executing anything in it. What kind it
// is is told by its bytes, never by its name:
//   PyTorch    torch.save(): zip archive (1.6 and later), pickle stream (0.2 to 1.5), tar (0.1)
//   safetensors
//   Keras      .h5 of Keras 1 and 2, .weights.h5 and .keras of Keras 3
// Names are those of the file; levels of nested dictionaries are joined by '/', modules of a model
// that was pickled whole by '.'. Errors are InputErrors "<file>: <what>; <what to do>", and say
// what a file is that cannot be read.
#pragma once

#include "weights/tensor_files/stored_tensor.h"

#include <map>
#include <string>
#include <vector>

namespace rk {

// What `eval --save-embeddings` writes is HDF5 as well, but no weights.
inline constexpr const char* kEmbeddingsFormat = "HDF5 embeddings";

struct TensorFile {
  std::string path;
  std::string format;  // in words: "PyTorch zip archive"
  std::string sha256;
  std::uint64_t bytes = 0;
  std::vector<StoredTensor> tensors;            // in the order of the file
  std::map<std::string, std::string> metadata;  // text beside them
  std::vector<std::string> notes;               // what was seen and left: a line each
};

constexpr std::size_t kMaxTensorFileBytes = std::size_t{16} << 30;

struct TensorFileOptions {
  bool check_crc = true;  // of zip archives
};

TensorFile read_tensor_file(const std::string& path, const TensorFileOptions& options = {});
// The same of a file's bytes; `path` is for messages.
TensorFile read_tensors(std::vector<std::byte> bytes, const std::string& path,
                        const TensorFileOptions& options = {});

}  // namespace rk
