#include "engine/device/buffer.h"

#include "engine/base/error.h"
#include "engine/base/sanitizers.h"
#include "tests/support/messages.h"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>

namespace rk {
namespace {

TEST(Buffer, IsAlignedAndWritableToItsEnd) {
  for (std::size_t bytes :
       {std::size_t{1}, std::size_t{63}, std::size_t{65}, std::size_t{5} << 20}) {
    const Buffer buffer(bytes);
    EXPECT_EQ(buffer.bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % Buffer::kAlignment, 0U);
    std::memset(buffer.data(), 0x5A, bytes);
    EXPECT_EQ(buffer.as<unsigned char>()[bytes - 1], 0x5A);
  }
}

TEST(Buffer, EmptyOwnsNothing) {
  EXPECT_EQ(Buffer().data(), nullptr);
  EXPECT_EQ(Buffer(0).data(), nullptr);
  EXPECT_EQ(Buffer::of<double>(3).bytes(), 24U);
}

TEST(Buffer, MovingHandsTheMemoryOver) {
  Buffer first(128);
  void* const memory = first.data();
  Buffer second(std::move(first));
  EXPECT_EQ(second.data(), memory);
  Buffer third(64);
  third = std::move(second);
  EXPECT_EQ(third.data(), memory);
  EXPECT_EQ(third.bytes(), 128U);
}

TEST(Buffer, SaysWhatWasAskedForWhenThereIsNoMemory) {
  if (RK_SANITIZED) GTEST_SKIP() << "sanitizers stop the program at a request of this size";
  try {
    const Buffer buffer(std::size_t{1} << 60);
    FAIL() << "an exbibyte was granted";
  } catch (const DeviceError& error) {
    EXPECT_TRUE(holds(std::string(error.what()), "1099511627776 MiB")) << error.what();
  }
}

}  // namespace
}  // namespace rk
