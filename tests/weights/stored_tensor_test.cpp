#include "weights/tensor_files/stored_tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace rk {
namespace {

// The ends of a type's range come back, from either order of bytes.
template <class T> void expect_ends(ElementType type) {
  const T ends[] = {std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), T{1}};
  const std::vector<std::int64_t> expected(std::begin(ends), std::end(ends));
  for (const bool big_endian : {false, true}) {
    const std::span<const std::byte> native = std::as_bytes(std::span(ends));
    std::vector<std::byte> bytes(native.begin(), native.end());
    if (big_endian) {
      for (auto at = bytes.begin(); at != bytes.end(); at += sizeof(T)) {
        std::reverse(at, at + sizeof(T));
      }
    }
    StoredTensor tensor;
    tensor.type = type;
    tensor.dims = {3};
    tensor.bytes = bytes;
    tensor.big_endian = big_endian;
    EXPECT_EQ(integer_values(tensor), expected) << name_of(type) << (big_endian ? ", big" : "");
  }
}

TEST(StoredTensor, IntegersOfEveryTypeKeepTheirValues) {
  expect_ends<std::int8_t>(ElementType::kI8);
  expect_ends<std::uint8_t>(ElementType::kU8);
  expect_ends<std::int16_t>(ElementType::kI16);
  expect_ends<std::uint16_t>(ElementType::kU16);
  expect_ends<std::int32_t>(ElementType::kI32);
  expect_ends<std::uint32_t>(ElementType::kU32);
  expect_ends<std::int64_t>(ElementType::kI64);
}

}  // namespace
}  // namespace rk
