// Fails the running test if a case's arrays are not as expected.
#pragma once

#include "tests/kernel_cases/kernel_case.h"

#include <gtest/gtest.h>

namespace rk {

inline void expect_as_checked(const Checked& array) {
  ASSERT_EQ(array.got.size(), array.expected.size()) << array.what;
  for (std::size_t i = 0; i < array.got.size(); ++i) {
    const double got = array.got[i];
    const double expected = array.expected[i];
    if (std::isnan(got) && std::isnan(expected)) continue;
    if (got == expected) continue;  // infinities too
    const double bound = array.absolute + array.relative * std::abs(expected);
    ASSERT_TRUE(std::abs(got - expected) <= bound)
        << array.what << "[" << i << "] of " << array.got.size() << ": " << got << ", expected "
        << expected << " within " << bound;
  }
}

// Two runs must give the same numbers, compared after widening; any NaN equals any NaN.
inline void expect_same_twice(const KernelCase& test) {
  const auto first = test.run();
  const auto second = test.run();
  ASSERT_EQ(first.size(), second.size());
  for (std::size_t k = 0; k < first.size(); ++k) {
    ASSERT_EQ(first[k].got.size(), second[k].got.size());
    for (std::size_t i = 0; i < first[k].got.size(); ++i) {
      const double a = first[k].got[i];
      const double b = second[k].got[i];
      ASSERT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << first[k].what << "[" << i << "]";
    }
  }
}

}  // namespace rk
