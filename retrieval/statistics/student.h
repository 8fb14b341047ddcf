// Student's t distribution: how much wider than the normal distribution's an interval has to be if
// the spread was estimated from few values.
#pragma once

#include <cstdint>

namespace rk {

// The share of the normal distribution below x.
double normal_share(double x);

// The x >= 0 for which -x to x holds the share `confidence`, within [0, 1), of the normal
// distribution; of Student's t distribution with `freedom` >= 1 degrees of freedom. Correct to 1e-6
// of the value up to a confidence of 0.9999.
double normal_quantile(double confidence);
double student_quantile(double confidence, std::int64_t freedom);

}  // namespace rk
