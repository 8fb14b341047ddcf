#include "tools/bench/timing.h"

#include <gtest/gtest.h>

namespace rk {
namespace {

TEST(BenchTiming, TheMedianOfAnEvenNumberIsTheMeanOfTheMiddle) {
  EXPECT_EQ(summarize({3}).median, 3);
  EXPECT_EQ(summarize({5, 1}).median, 3);
  EXPECT_EQ(summarize({9, 1, 2}).median, 2);
  const Timing four = summarize({8, 2, 4, 1});
  EXPECT_EQ(four.median, 3);
  EXPECT_EQ(four.least, 1);
  EXPECT_EQ(four.most, 8);
}

}  // namespace
}  // namespace rk
