#include "retrieval/statistics/mutual_information.h"

#include "engine/base/error.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace rk {
namespace {

template <class Counts> double entropy(const Counts& counts, double total) {
  double sum = 0;
  for (const auto& [key, count] : counts) {
    const double share = static_cast<double>(count) / total;
    sum -= share * std::log(share);
  }
  return sum;
}

}  // namespace

double normalized_mutual_information(std::span<const std::int64_t> u,
                                     std::span<const std::int64_t> v) {
  expect(u.size() == v.size() && !u.empty(),
         "[mutual_information] expected two labels a row, got {} and {}", u.size(), v.size());
  std::map<std::int64_t, std::int64_t> of_u, of_v;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> of_both;
  for (std::size_t i = 0; i < u.size(); ++i) {
    ++of_u[u[i]];
    ++of_v[v[i]];
    ++of_both[{u[i], v[i]}];
  }
  const auto total = static_cast<double>(u.size());
  const double h_u = entropy(of_u, total), h_v = entropy(of_v, total);
  if (h_u + h_v == 0) return 1;
  double information = 0;
  for (const auto& [pair, count] : of_both) {
    const auto n = static_cast<double>(count);
    const auto a = static_cast<double>(of_u[pair.first]);
    const auto b = static_cast<double>(of_v[pair.second]);
    information += n / total * std::log(n * total / (a * b));
  }
  return std::clamp(2 * information / (h_u + h_v), 0.0, 1.0);
}

}  // namespace rk
