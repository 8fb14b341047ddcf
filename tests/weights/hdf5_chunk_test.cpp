#include "weights/hdf5/chunk.h"

#include "engine/base/random.h"
#include "tests/support/messages.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <numeric>
#include <stdexcept>

namespace rk {
namespace {

using Bytes = std::vector<std::byte>;

constexpr Hdf5Filter kDeflate{H5Z_FILTER_DEFLATE, 1};
constexpr Hdf5Filter kShuffle{H5Z_FILTER_SHUFFLE, 4};

Bytes deflated(const Bytes& bytes) {
  uLongf size = compressBound(bytes.size());
  Bytes out(size);
  compress(reinterpret_cast<Bytef*>(out.data()), &size,
           reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  out.resize(size);
  return out;
}

Bytes counting(std::size_t count) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7);
  return bytes;
}

std::string refusal(const Bytes& stored, std::span<const Hdf5Filter> filters, std::size_t bytes) {
  return message_of<std::runtime_error>([&] { unfold_chunk(stored, filters, 0, bytes); });
}

TEST(Hdf5Chunk, UnfoldsInReverse) {
  const Bytes plain = counting(1000);
  const std::array once = {kDeflate};
  EXPECT_EQ(unfold_chunk(deflated(plain), once, 0, 1000), plain);
  const std::array twice = {kDeflate, kDeflate};
  EXPECT_EQ(unfold_chunk(deflated(deflated(plain)), twice, 0, 1000), plain);
  EXPECT_EQ(unfold_chunk(deflated(plain), twice, 2, 1000), plain);  // the second was skipped
  EXPECT_EQ(unfold_chunk(plain, twice, 3, 1000), plain);
  // Noise grows when it is deflated: between the stages there are more bytes than in the chunk.
  CounterRandom random(1, 0, 0);
  Bytes noise(1000);
  for (std::byte& each : noise) each = static_cast<std::byte>(random.below(256));
  ASSERT_GT(deflated(noise).size(), noise.size());
  EXPECT_EQ(unfold_chunk(deflated(deflated(noise)), twice, 0, 1000), noise);
  const std::array shuffled = {kShuffle};
  EXPECT_EQ(unfold_chunk({std::byte{1}, std::byte{5}, std::byte{2}, std::byte{6}, std::byte{3},
                          std::byte{7}, std::byte{4}, std::byte{8}, std::byte{9}},
                         shuffled, 0, 9),
            (Bytes{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}, std::byte{5},
                   std::byte{6}, std::byte{7}, std::byte{8}, std::byte{9}}));
}

TEST(Hdf5Chunk, NothingBeyondTheChunkIsInflated) {
  const std::array once = {kDeflate};
  const Bytes large(std::size_t{64} << 20);  // deflates to a thousandth
  EXPECT_EQ(refusal(deflated(large), once, 1000), "inflates beyond its size");
  EXPECT_EQ(refusal(deflated(counting(1001)), once, 1000), "inflates beyond its size");
  EXPECT_EQ(refusal(deflated(counting(999)), once, 1000),
            "has another size than the chunks declared");
  const std::array twice = {kDeflate, kDeflate};
  EXPECT_EQ(refusal(deflated(large), twice, 1000), "inflates beyond its size");
  Bytes cut = deflated(counting(1000));
  cut.resize(cut.size() / 2);
  EXPECT_EQ(refusal(cut, once, 1000), "is cut short");
  EXPECT_EQ(refusal(counting(100), once, 1000), "is no deflate stream");
  EXPECT_EQ(refusal({}, once, 1000), "is cut short");
}

}  // namespace
}  // namespace rk
