#include "retrieval/files/stored_array.h"

#include "engine/base/error.h"
#include "engine/base/shape.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace rk {
namespace {

std::uint32_t code_point(const std::byte* from, bool big_endian) {
  std::uint32_t value = 0;
  std::memcpy(&value, from, sizeof(value));
  return big_endian ? __builtin_bswap32(value) : value;
}

void add_utf8(std::string& out, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
    fail<InputError>("holds U+{:X}, which is no character; save it again", code);
  }
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | (code >> 6));
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3F));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

}  // namespace

std::string text_of(const StoredArray& array) {
  return fmt::format("{} {}{}", array.dtype, shape_text(array.dims()),
                     array.column_major ? ", columns first" : "");
}

std::vector<float> rows_as_float32(const StoredArray& array) {
  const StoredTensor& whole = array.tensor;
  const std::int64_t rows = whole.dims[0], dim = whole.dims[1];
  std::vector<float> out(static_cast<std::size_t>(rows * dim));
  // Converts by blocks, so that nothing but the result is as large as the file.
  const std::int64_t block = std::max(std::int64_t{1}, (std::int64_t{1} << 20) / dim);
  std::vector<float> space;
  for (std::int64_t first = 0; first < rows; first += block) {
    const StoredTensor part = whole.slice(first, std::min(block, rows - first));
    const std::span<const float> values = float_values(part, space);
    std::copy(values.begin(), values.end(), out.begin() + first * dim);
  }
  return out;
}

std::vector<std::int64_t> integers_of(const StoredArray& array, const std::string& from) {
  std::vector<std::int64_t> values = integer_values(array.tensor);
  if (array.tensor.type != ElementType::kU64) return values;
  const auto beyond = std::ranges::find_if(values, [](std::int64_t value) { return value < 0; });
  if (beyond != values.end()) {
    fail<InputError>("{}: holds {} in row {}; give numbers below 2^63", from,
                     static_cast<std::uint64_t>(*beyond), beyond - values.begin());
  }
  return values;
}

std::string text_at(const StoredArray& array, std::int64_t index) {
  const auto units = static_cast<std::size_t>(array.text->units);
  const std::size_t unit = array.text->wide ? 4 : 1;
  const std::byte* from =
      array.tensor.bytes.data() + static_cast<std::size_t>(index) * units * unit;
  std::string text;
  std::size_t zeros = 0;
  for (std::size_t u = 0; u < units; ++u) {
    const std::uint32_t code = array.text->wide
                                   ? code_point(from + u * unit, array.tensor.big_endian)
                                   : static_cast<std::uint32_t>(from[u]);
    if (code == 0) {
      ++zeros;
      continue;
    }
    text.append(std::exchange(zeros, 0), '\0');
    if (array.text->wide) {
      add_utf8(text, code);
    } else {
      text.push_back(static_cast<char>(code));
    }
  }
  return text;
}

}  // namespace rk
