// safetensors in and out. https://github.com/huggingface/safetensors, whose rules these are:
//   uint64 N | N bytes of JSON {"__metadata__": {text: text}, name: {dtype, shape, data_offsets}}
//   | data
// N is at most 100,000,000; tensors follow each other without holes or overlap from the first byte
// behind the header to the file's last. Little-endian. Of our own: at most 100,000 tensors of 64
// axes, names of 64 KiB.
#pragma once

#include "weights/tensor_files/tensor_file.h"

#include <cstdint>

namespace rk {

// `bytes` must outlive the result or be kept alive by `owner`. `name` is for messages. Throws
// InputError if any rule is broken.
TensorFile read_safetensors(std::span<const std::byte> bytes,
                            const std::shared_ptr<const void>& owner, const std::string& name);

struct NamedValues {
  std::string name;
  ElementType type = ElementType::kF32;
  std::vector<std::int64_t> dims;
  std::span<const std::byte> values;  // C order
};

// Equal byte for byte to the official writer's output: sorted by type (ElementType, descending),
// then by name; the header padded with blanks to a multiple of 8.
std::vector<std::byte> write_safetensors(std::vector<NamedValues> tensors,
                                         const std::map<std::string, std::string>& metadata);

}  // namespace rk
