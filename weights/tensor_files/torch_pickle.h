// The tensors that a pickle of PyTorch's speaks of.
//
// Dictionaries are walked, however deep; a model that was pickled whole is walked by its modules,
// parameters and buffers. What is neither (optimizers' lists, arguments of a training program) is
// left, and its globals are named in a note. Nothing recurses over the input.
#pragma once

#include "weights/tensor_files/pickle.h"
#include "weights/tensor_files/tensor_file.h"

#include <functional>

namespace rk {

// Numbers in a row, which tensors are views of.
struct TorchStorage {
  ElementType type = ElementType::kF32;
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
  bool big_endian = false;
};

// "torch.FloatStorage" and "torch.FloatTensor" -> kF32; nullopt for what is no such class.
std::optional<ElementType> torch_element_type(const std::string& global);

// The integer of a node; nullopt where it is none or does not fit.
std::optional<std::int64_t> pickled_integer(const PickleNode& node);

// Dims, strides and offset in elements over a storage; InputError unless every element lies in it.
StoredTensor view_of(const TorchStorage& storage, const std::vector<std::int64_t>& dims,
                     const std::vector<std::int64_t>& strides, std::int64_t offset,
                     const std::string& tensor, const std::string& file);

// `find` gives the storage of a kStored node (nullopt: of a type that no weights have); `whole`,
// where files have such, the tensor that a kStored node stands for by itself (nullopt: none). Adds
// tensors and notes to `file`.
struct TorchStorages {
  std::function<std::optional<TorchStorage>(const PickleNode&)> find;
  std::function<std::optional<StoredTensor>(const PickleNode&)> whole;
};
void collect_tensors(const Pickle& pickle, const TorchStorages& storages, TensorFile& file);

}  // namespace rk
