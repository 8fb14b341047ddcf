// A bound on how far two results lie apart, which prints the share of it that was used:
// tools/scripts/test_gpu.sh lists the largest.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace rk {

// `note` is what a line of the same test may add, such as where it was.
inline void expect_within(const std::string& what, double off, double bound,
                          const std::string& note = "") {
  const ::testing::TestInfo* test = ::testing::UnitTest::GetInstance()->current_test_info();
  fmt::print("share {:.3f}  {}.{} | {} | {:.1e} of {:.1e} {}\n", off / bound,
             test->test_suite_name(), test->name(), what, off, bound, note);
  EXPECT_LE(off, bound) << what << ' ' << note;
}

}  // namespace rk
