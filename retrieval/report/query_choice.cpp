#include "retrieval/report/query_choice.h"

#include "engine/base/random.h"
#include "engine/base/random_stream.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace rk {
namespace {

std::vector<std::int64_t> with_something_to_find(const PerQuery& queries) {
  std::vector<std::int64_t> rows;
  for (std::size_t q = 0; q < queries.num_relevant.size(); ++q) {
    if (queries.num_relevant[q] > 0) rows.push_back(static_cast<std::int64_t>(q));
  }
  return rows;
}

// The first `count` of `rows` by `key`, ascending.
template <class Key>
std::vector<std::int64_t> first_by(std::vector<std::int64_t> rows, std::size_t count, Key key) {
  count = std::min(count, rows.size());
  std::partial_sort(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(count), rows.end(),
                    [&](std::int64_t a, std::int64_t b) { return key(a) < key(b); });
  rows.resize(count);
  return rows;
}

}  // namespace

std::vector<std::int64_t> hardest_queries(const PerQuery& queries, std::size_t count) {
  return first_by(with_something_to_find(queries), count, [&](std::int64_t row) {
    const auto q = static_cast<std::size_t>(row);
    return std::tuple(queries.ap[q], -queries.first_hit_rank[q], row);
  });
}

std::vector<std::int64_t> random_queries(const PerQuery& queries, std::size_t count,
                                         std::uint64_t seed,
                                         std::span<const std::int64_t> without) {
  std::vector<std::int64_t> rows = with_something_to_find(queries);
  std::erase_if(rows,
                [&](std::int64_t row) { return std::ranges::find(without, row) != without.end(); });
  count = std::min(count, rows.size());
  CounterRandom random(seed, random_stream(RandomUseOnce::kReportQueries), rows.size());
  for (std::size_t i = 0; i < count; ++i) {
    const auto left = static_cast<std::int64_t>(rows.size() - i);
    std::swap(rows[i], rows[i + static_cast<std::size_t>(random.below(left))]);
  }
  rows.resize(count);
  return rows;
}

std::vector<std::int64_t> most_gained(const PerQuery& a, const PerQuery& b, std::size_t count) {
  const auto gain = [&](std::int64_t row) {
    const auto q = static_cast<std::size_t>(row);
    return b.ap[q] - a.ap[q];
  };
  std::vector<std::int64_t> rows = with_something_to_find(a);
  std::erase_if(rows, [&](std::int64_t row) { return !(gain(row) > 0); });
  return first_by(std::move(rows), count,
                  [&](std::int64_t row) { return std::pair(-gain(row), row); });
}

}  // namespace rk
