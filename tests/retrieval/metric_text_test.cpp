#include "retrieval/metric_text.h"

#include <gtest/gtest.h>

#include <limits>

namespace rk {
namespace {

TEST(MetricText, ZeroHasNoSignOfItsOwn) {
  EXPECT_EQ(text_of_metric(0.12345), "0.1235");
  EXPECT_EQ(text_of_metric(-0.25), "-0.2500");
  EXPECT_EQ(text_of_metric(-1e-5), "0.0000");
  EXPECT_EQ(text_of_metric(-0.0), "0.0000");
  EXPECT_EQ(text_of_metric(-0.00006), "-0.0001");
  EXPECT_EQ(text_of_difference(-1e-5), "+0.0000");
  EXPECT_EQ(text_of_difference(-0.00006), "-0.0001");
  EXPECT_EQ(text_of_difference(0.5), "+0.5000");
}

TEST(MetricText, WhatIsNotFiniteIsUndefined) {
  for (const double value :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(text_of_metric(value), "undefined");
    EXPECT_EQ(text_of_difference(-value), "undefined");
  }
}

}  // namespace
}  // namespace rk
