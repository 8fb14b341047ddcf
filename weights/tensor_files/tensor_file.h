// Reads a foreign file of tensors without executing anything in it. The format is detected from the
// bytes, never from the name:
//   PyTorch    torch.save(): zip archive (1.6 and later), pickle stream (0.2 to 1.5), tar (0.1)
//   safetensors
//   Keras      .h5 of Keras 1 and 2, .weights.h5 and .keras of Keras 2.12 and later
// Names are the file's own; levels of nested dictionaries are joined by '/', modules of a whole
// pickled model by '.'. Errors are InputErrors "<file>: <what>; <what to do>", which also name the
// format of an unsupported file.
#pragma once

#include "weights/tensor_files/stored_tensor.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace rk {

struct TensorFile {
  // kEmbeddings: of `eval --save-embeddings`, HDF5 as Keras's, but no weights.
  enum class Kind { kTorch, kSafetensors, kKeras, kRankine, kEmbeddings };

  std::string path;
  Kind kind = Kind::kTorch;
  std::string format;  // in words: "PyTorch zip archive"
  std::string sha256;
  std::uint64_t bytes = 0;
  std::vector<StoredTensor> tensors;            // in the order of the file
  std::map<std::string, std::string> metadata;  // text stored with the tensors
  std::vector<std::string> notes;               // one line for each thing left out
  // Of Keras: by name, why a data set is not read, for a refusal if the network needs it.
  std::map<std::string, std::string> unread;
};

constexpr std::size_t kMaxTensorFileBytes = std::size_t{16} << 30;
constexpr std::size_t kMaxTensors = 100'000;  // of a file

struct TensorFileOptions {
  bool check_crc = true;  // of zip archives
};

// Throws InputError "<the file's path>: <what>".
[[noreturn]] void refuse(const std::string& path, const std::string& what);
[[noreturn]] void refuse(const TensorFile& file, const std::string& what);

TensorFile read_tensor_file(const std::string& path, const TensorFileOptions& options = {});
// The same from a file's bytes; `path` is for messages.
TensorFile read_tensors(std::vector<std::byte> bytes, const std::string& path,
                        const TensorFileOptions& options = {});

}  // namespace rk
