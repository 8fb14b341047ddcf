// Times of repeated work, for `bench`: median, least and most.
#pragma once

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

namespace rk {

struct Timing {
  double median = 0, least = 0, most = 0;
};

// `values` must not be empty.
inline Timing summarize(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values[values.size() / 2], values.front(), values.back()};
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
