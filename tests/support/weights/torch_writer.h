// Files as torch.save() writes them, made without PyTorch: the same opcodes, containers and
// layouts, and, for tests of what must be refused, any opcodes in any place.
#pragma once

#include "weights/tensor_files/element_type.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace rk {

// A number's bytes, the lowest first.
template <class T> std::string little(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

// Appends opcodes of protocol 2.
class PickleWriter {
 public:
  PickleWriter& raw(std::string_view bytes);
  PickleWriter& proto() { return raw(std::string_view("\x80\x02", 2)); }
  PickleWriter& global(const std::string& module, const std::string& name);
  PickleWriter& text(const std::string& value);
  PickleWriter& integer(std::int64_t value);
  PickleWriter& integers(const std::vector<std::int64_t>& values);  // a tuple
  PickleWriter& ordered_dict();                                     // an empty one
  PickleWriter& stop() { return raw("."); }

  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

struct TorchContent {
  struct Storage {
    std::string key;  // in a tar: a number
    ElementType type = ElementType::kF32;
    std::string bytes;
  };
  struct Tensor {
    std::string name;
    std::size_t storage = 0;  // place in `storages`
    std::vector<std::int64_t> dims, strides;
    std::int64_t offset = 0;
  };

  std::vector<Storage> storages;
  std::vector<Tensor> tensors;
  bool big_endian = false;
  std::string wrapper;                                       // outer dictionary's key: "state_dict"
  std::vector<std::pair<std::string, std::string>> further;  // more inner entries: name, opcodes
};

// A contiguous float32 tensor with a storage of its own.
void add_tensor(TorchContent& content, const std::string& name,
                const std::vector<std::int64_t>& dims, const std::vector<float>& values);
void add_counter(TorchContent& content, const std::string& name, std::int64_t value);

using ArchiveMembers = std::vector<std::pair<std::string, std::string>>;
std::string zip_of(const ArchiveMembers& members, bool deflate = false);
// Holds `bytes` under each of the names, which have one length. They are deflated once.
std::string zip_of_copies(const std::string& bytes, const std::vector<std::string>& names);
std::string tar_of(const ArchiveMembers& members);

ArchiveMembers torch_zip_members(const TorchContent& content, const std::string& root = "archive");
std::string torch_zip(const TorchContent& content);
std::string torch_stream(const TorchContent& content);
std::string torch_tar(const TorchContent& content);

}  // namespace rk
