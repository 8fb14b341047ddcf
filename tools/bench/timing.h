// Times of repeated work, for `bench`: median, least and most.
#pragma once

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace rk {

struct Timing {
  double median = 0, least = 0, most = 0;
};

// `values` must not be empty. The median of an even number of values is the mean of the two in the
// middle.
inline Timing summarize(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  const double median =
      values.size() % 2 == 0 ? (values[half - 1] + values[half]) / 2 : values[half];
  return {median, values.front(), values.back()};
}

template <class F> double milliseconds(F&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

// Adds the keys name, name_min and name_max.
inline void put(nlohmann::json& json, const std::string& name, const Timing& timing) {
  json[name] = timing.median;
  json[name + "_min"] = timing.least;
  json[name + "_max"] = timing.most;
}

}  // namespace rk
