#include "engine/base/english.h"

#include <gtest/gtest.h>

#include <cstddef>

namespace rk {
namespace {

TEST(English, NounsGoByTheirNumber) {
  EXPECT_EQ(counted(1, "image"), "1 image");
  EXPECT_EQ(counted(0, "image"), "0 images");
  EXPECT_EQ(counted(std::size_t{2}, "new class"), "2 new classes");
  EXPECT_EQ(counted(3, "batch"), "3 batches");
  EXPECT_EQ(counted(4, "epoch"), "4 epochs");
  EXPECT_EQ(counted(2, "query"), "2 queries");
  EXPECT_EQ(counted(1, "category"), "1 category");
  EXPECT_EQ(counted(7, "proxy"), "7 proxies");
  EXPECT_EQ(counted(2, "GPU"), "2 GPUs");
}

TEST(English, ArticlesGoByTheFirstLetter) {
  EXPECT_EQ(with_article("inception_v3"), "an inception_v3");
  EXPECT_EQ(with_article("resnet50"), "a resnet50");
}

TEST(English, TooLittleNeverReadsAsEnough) {
  constexpr std::uint64_t kMib = 1 << 20;
  EXPECT_EQ(needed_size(1), "1 KiB");
  EXPECT_EQ(free_size(1023), "0 KiB");
  EXPECT_EQ(needed_size(kMib - 1), "1024 KiB");
  EXPECT_EQ(free_size(kMib - 1), "1023 KiB");
  EXPECT_EQ(needed_size(kMib), "1.0 MiB");
  EXPECT_EQ(free_size(kMib), "1.0 MiB");
  EXPECT_EQ(needed_size(kMib + 1), "1.1 MiB");
  EXPECT_EQ(free_size(2 * kMib - 1), "1.9 MiB");
  for (std::uint64_t free : {std::uint64_t{0}, kMib - 1024, kMib, kMib * 11 / 10, 700 * kMib}) {
    EXPECT_NE(needed_size(free + 1), free_size(free)) << free;
  }
}

}  // namespace
}  // namespace rk
