// Collects the tensors that a PyTorch pickle refers to.
//
// Dictionaries, of any class, are walked to any depth; a whole pickled model is walked by its
// modules, parameters and buffers. A list or tuple in place of the outermost one is refused.
// Anything else (lists of an optimizer, arguments of a training program) is left out, and its
// globals are named in a note. Nothing recurses over the input.
#pragma once

#include "weights/tensor_files/pickle.h"
#include "weights/tensor_files/tensor_file.h"

#include <cstdint>
#include <functional>

namespace rk {

// A one-dimensional array of numbers, of which tensors are views.
struct TorchStorage {
  ElementType type = ElementType::kF32;
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
  bool big_endian = false;
};

// "torch.FloatStorage" and "torch.FloatTensor" -> kF32; nullopt for other names.
std::optional<ElementType> torch_element_type(const std::string& global);

// The bytes of an element of a storage class: also of those that no weights have, such as
// "torch.ComplexDoubleStorage", and 1 of an untyped one; nullopt for other names.
std::optional<std::size_t> torch_item_bytes(const std::string& global);

// The integer of a node; nullopt if the node is not an integer or the value does not fit.
std::optional<std::int64_t> pickled_integer(const PickleNode& node);

// What sys_info, a dictionary, says of the machine that saved the file; false if it says nothing.
bool is_big_endian(const Pickle& sys_info);

// The view of a storage with dims, strides and offset in elements; throws InputError unless every
// element lies in the storage.
StoredTensor view_of(const TorchStorage& storage, const std::vector<std::int64_t>& dims,
                     const std::vector<std::int64_t>& strides, std::int64_t offset,
                     const std::string& tensor, const std::string& file);

// `find` returns the storage of a kStored node (nullopt: of a type that weights never have).
// `whole`, set only for formats that have such nodes, returns the tensor that a kStored node stands
// for by itself (nullopt: none). collect_tensors() adds tensors and notes to `file`.
struct TorchStorages {
  std::function<std::optional<TorchStorage>(const PickleNode&)> find;
  std::function<std::optional<StoredTensor>(const PickleNode&)> whole;
};
void collect_tensors(const Pickle& pickle, const TorchStorages& storages, TensorFile& file);

}  // namespace rk
