// An array as a file of numpy's or safetensors holds it: numbers, or texts of one width. Nothing is
// converted before it is asked for; readers have checked that every element lies within the file.
#pragma once

#include "weights/tensor_files/stored_tensor.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rk {

// Texts of `units` units each, shorter ones filled up with zeros.
struct TextLayout {
  std::int64_t units = 0;
  bool wide = false;  // UTF-32 (numpy's U), else bytes (numpy's S)
};

struct StoredArray {
  std::string name;   // "" where the file holds one alone
  std::string dtype;  // in words of the file: "float16", "<U12"
  bool columns_first = false;
  // Of texts: dims, bytes, big_endian and owner alone.
  StoredTensor tensor;
  std::optional<TextLayout> text;

  const std::vector<std::int64_t>& dims() const { return tensor.dims; }
  bool real() const { return !text && is_real(tensor.type); }
  bool integer() const { return !text && is_integer(tensor.type); }
};

// "float16 [352, 64], columns first"
std::string text_of(const StoredArray& array);

// All of a real array [N, D] as float32 in C order; values beyond float32 become infinite.
std::vector<float> rows_as_float32(const StoredArray& array);

// Of an array of integers. InputError, beginning with `from`, where one is 2^63 or more.
std::vector<std::int64_t> integers_of(const StoredArray& array, const std::string& from);

// The text at `index` in C order, as UTF-8; zeros at the end are no part of it. InputError (without
// the file's name) where a character is none of Unicode's. The array is contiguous.
std::string text_at(const StoredArray& array, std::int64_t index);

}  // namespace rk
