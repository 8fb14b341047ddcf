#include "weights/tensor_files/stored_tensor.h"

#include "engine/base/random.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
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

// Slices of drawn shapes, with and without gaps between elements, hold what the whole holds there.
TEST(StoredTensor, SlicesAreThePartsOfTheWhole) {
  const std::uint64_t seed = random_seed();
  for (std::uint64_t round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    CounterRandom random(seed, 0, round);
    StoredTensor tensor;
    tensor.type = ElementType::kI16;
    std::int64_t span = 1;
    for (std::int64_t rank = 1 + random.below(3); rank > 0; --rank) {
      tensor.dims.push_back(1 + random.below(5));
    }
    if (random.below(2) == 0) {
      tensor.strides.resize(tensor.dims.size());
      for (std::size_t axis = tensor.dims.size(); axis-- > 0;) {
        tensor.strides[axis] = span + random.below(3);
        span = tensor.strides[axis] * tensor.dims[axis];
      }
    } else {
      span = tensor.elements();
    }
    std::vector<std::int16_t> values(static_cast<std::size_t>(span));
    std::iota(values.begin(), values.end(), std::int16_t{0});
    tensor.bytes = std::as_bytes(std::span(values));
    const std::vector<std::int64_t> whole = integer_values(tensor);
    const std::int64_t each = tensor.elements() / tensor.dims[0];
    const std::int64_t begin = random.below(tensor.dims[0]);
    const std::int64_t count = 1 + random.below(tensor.dims[0] - begin);
    const std::vector<std::int64_t> expected(whole.begin() + begin * each,
                                             whole.begin() + (begin + count) * each);
    EXPECT_EQ(integer_values(tensor.slice(begin, count)), expected);
  }
}

}  // namespace
}  // namespace rk
