// A tensor as stored in a foreign file: bytes, and how to read them. Nothing is converted until it
// is requested. Readers check on creation that every element lies within `bytes`.
#pragma once

#include "weights/tensor_files/element_type.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace rk {

struct StoredTensor {
  std::string name;
  ElementType type = ElementType::kF32;
  std::vector<std::int64_t> dims;     // empty: a scalar
  std::vector<std::int64_t> strides;  // in elements; empty: in C order without gaps
  std::span<const std::byte> bytes;   // from the first element on
  bool big_endian = false;
  std::shared_ptr<const void> owner;  // keeps `bytes` alive

  std::int64_t elements() const;
  bool contiguous() const;  // in C order without gaps
  // [begin, begin + count) along the first axis; only for types of whole bytes.
  StoredTensor slice(std::int64_t begin, std::int64_t count) const;
};

// The elements in C order, in this machine's byte order. Only for types of whole bytes.
std::vector<std::byte> contiguous_bytes(const StoredTensor& tensor);

// The elements of a real tensor in C order as float32: a view of the file if it stores them so,
// else converted into `space`. Values beyond float32 become infinite.
std::span<const float> float_values(const StoredTensor& tensor, std::vector<float>& space);

// The elements of an integer tensor in C order; values beyond int64 wrap around (two's complement).
std::vector<std::int64_t> integer_values(const StoredTensor& tensor);

}  // namespace rk
