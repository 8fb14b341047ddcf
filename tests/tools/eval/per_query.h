// What eval --per-query writes, as the intervals of its queries need it.
#pragma once

#include "retrieval/evaluate.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace rk {

// metrics: of --json; null, of queries without anything to find, becomes NaN.
inline PerQuery per_query_of(const nlohmann::json& metrics) {
  PerQuery out;
  const nlohmann::json& of = metrics.at("per_query");
  for (const auto& [values, key] :
       {std::pair{&out.ap, "ap"}, {&out.ap_at_r, "ap_at_r"}, {&out.r_precision, "r_precision"}}) {
    for (const nlohmann::json& value : of.at(key)) {
      values->push_back(value.is_null() ? std::nan("") : value.get<double>());
    }
  }
  out.first_hit_rank = of.at("first_hit_rank").get<std::vector<std::int64_t>>();
  out.num_relevant = of.at("num_relevant").get<std::vector<std::int64_t>>();
  return out;
}

}  // namespace rk
