#include "weights/tensor_files/stored_tensor.h"

#include "engine/base/half.h"
#include "weights/hdf5/element_count.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace rk {
namespace {

static_assert(std::endian::native == std::endian::little,
              "elements are taken as they lie in little-endian files");

template <class T> T loaded(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <class T> std::vector<std::int64_t> as_integers(std::span<const std::byte> bytes) {
  std::vector<std::int64_t> values(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    // An int8 is a number, not a character, and keeps its sign.
    // NOLINTNEXTLINE(bugprone-signed-char-misuse)
    values[i] = static_cast<std::int64_t>(loaded<T>(bytes.data() + i * sizeof(T)));
  }
  return values;
}

// out[i] = f(element i) of contiguous elements.
template <class T, class F>
void convert(std::span<const std::byte> bytes, std::vector<float>& out, F&& f) {
  out.resize(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = f(loaded<T>(bytes.data() + i * sizeof(T)));
}

}  // namespace

std::int64_t StoredTensor::elements() const { return element_count(dims); }

bool StoredTensor::contiguous() const {
  if (strides.empty() || elements() == 0) return true;
  std::int64_t expected = 1;
  for (std::size_t axis = dims.size(); axis-- > 0;) {
    if (dims[axis] != 1 && strides[axis] != expected) return false;
    expected *= dims[axis];
  }
  return true;
}

StoredTensor StoredTensor::slice(std::int64_t begin, std::int64_t count) const {
  const std::int64_t step = strides.empty() ? elements() / dims[0] : strides[0];
  StoredTensor out = *this;
  out.dims[0] = count;
  out.bytes = bytes.subspan(static_cast<std::size_t>(begin * step) *
                            static_cast<std::size_t>(bits_of(type) / 8));
  return out;
}

std::vector<std::byte> contiguous_bytes(const StoredTensor& tensor) {
  const auto item = static_cast<std::size_t>(bits_of(tensor.type) / 8);
  const auto count = static_cast<std::size_t>(tensor.elements());
  std::vector<std::byte> out(count * item);
  if (tensor.contiguous()) {
    std::copy_n(tensor.bytes.begin(), out.size(), out.begin());
  } else {
    // An odometer over the axes; `at` is the element's position in the file.
    std::vector<std::int64_t> index(tensor.dims.size(), 0);
    std::int64_t at = 0;
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(out.data() + i * item, tensor.bytes.data() + static_cast<std::size_t>(at) * item,
                  item);
      for (std::size_t axis = index.size(); axis-- > 0;) {
        at += tensor.strides[axis];
        if (++index[axis] < tensor.dims[axis]) break;
        at -= tensor.strides[axis] * tensor.dims[axis];
        index[axis] = 0;
      }
    }
  }
  if (tensor.big_endian && item > 1) {
    for (std::size_t i = 0; i < count; ++i) {
      std::reverse(out.begin() + static_cast<std::ptrdiff_t>(i * item),
                   out.begin() + static_cast<std::ptrdiff_t>((i + 1) * item));
    }
  }
  return out;
}

std::span<const float> float_values(const StoredTensor& tensor, std::vector<float>& space) {
  const bool as_it_lies = tensor.contiguous() && !tensor.big_endian;
  const auto count = static_cast<std::size_t>(tensor.elements());
  const std::byte* begin = tensor.bytes.data();
  if (tensor.type == ElementType::kF32 && as_it_lies &&
      reinterpret_cast<std::uintptr_t>(begin) % alignof(float) == 0) {
    return {reinterpret_cast<const float*>(begin), count};
  }
  std::vector<std::byte> gathered;
  std::span<const std::byte> bytes;
  if (as_it_lies) {
    bytes = tensor.bytes.first(count * static_cast<std::size_t>(bits_of(tensor.type) / 8));
  } else {
    gathered = contiguous_bytes(tensor);
    bytes = gathered;
  }
  switch (tensor.type) {
    case ElementType::kF16: convert<std::uint16_t>(bytes, space, from_float16); break;
    case ElementType::kBf16: convert<std::uint16_t>(bytes, space, from_bfloat16); break;
    case ElementType::kF32: convert<float>(bytes, space, [](float x) { return x; }); break;
    default: convert<double>(bytes, space, [](double x) { return static_cast<float>(x); }); break;
  }
  return space;
}

std::vector<std::int64_t> integer_values(const StoredTensor& tensor) {
  const std::vector<std::byte> bytes = contiguous_bytes(tensor);
  switch (tensor.type) {
    case ElementType::kI8: return as_integers<std::int8_t>(bytes);
    case ElementType::kI16: return as_integers<std::int16_t>(bytes);
    case ElementType::kU16: return as_integers<std::uint16_t>(bytes);
    case ElementType::kI32: return as_integers<std::int32_t>(bytes);
    case ElementType::kU32: return as_integers<std::uint32_t>(bytes);
    case ElementType::kI64: return as_integers<std::int64_t>(bytes);
    case ElementType::kU64: return as_integers<std::uint64_t>(bytes);
    default: return as_integers<std::uint8_t>(bytes);
  }
}

}  // namespace rk
