// An array as stored in a numpy or safetensors file: numbers, or texts of one width. Nothing is
// converted before it is requested; readers have checked that every element lies within the file.
#pragma once

#include "weights/tensor_files/stored_tensor.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rk {

// Texts of `units` units each, shorter ones padded with zeros.
struct TextLayout {
  std::int64_t units = 0;
  bool wide = false;  // UTF-32 (numpy's U), else bytes (numpy's S)
};

struct StoredArray {
  std::string name;   // "" if the file holds only one array
  std::string dtype;  // as the file writes it: "float16", "<U12"
  bool column_major = false;
  // For texts only dims, bytes, big_endian and owner are set.
  StoredTensor tensor;
  std::optional<TextLayout> text;

  const std::vector<std::int64_t>& dims() const { return tensor.dims; }
  bool real() const { return !text && is_real(tensor.type); }
  bool integer() const { return !text && is_integer(tensor.type); }
};

// "float16 [352, 64], columns first"
std::string text_of(const StoredArray& array);

// All of a real array [N, D] as float32 in C order; values beyond the range become infinite.
std::vector<float> rows_as_float32(const StoredArray& array);

// The elements of an array of integers. Throws InputError, whose message begins with `from`, if one
// is 2^63 or more.
std::vector<std::int64_t> integers_of(const StoredArray& array, const std::string& from);

// The text at `index` in C order, as UTF-8, without trailing zeros. Throws InputError (without the
// file's name) if a character is not valid Unicode. The array must be contiguous.
std::string text_at(const StoredArray& array, std::int64_t index);

}  // namespace rk
