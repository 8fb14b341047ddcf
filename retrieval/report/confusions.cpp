#include "retrieval/report/confusions.h"

#include "engine/base/integers.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace rk {

std::vector<Confusion> most_confused(const EmbeddingSet& queries, const EmbeddingSet* gallery,
                                     const PerQuery& per_query, const Neighbours& neighbours,
                                     std::size_t count) {
  const std::vector<std::int64_t>& found = gallery != nullptr ? gallery->labels : queries.labels;
  std::map<std::int64_t, std::int64_t> of_class;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> times;
  for (std::int64_t q = 0; q < queries.count(); ++q) {
    if (per_query.num_relevant[at(q)] == 0) continue;
    const std::int64_t label = queries.labels[at(q)];
    ++of_class[label];
    const std::int64_t first = found[at(neighbours.of(q).front().row)];
    if (first != label) ++times[{label, first}];
  }
  std::vector<Confusion> all;
  for (const auto& [labels, n] : times) {
    all.push_back({labels.first, labels.second, n, of_class[labels.first]});
  }
  std::sort(all.begin(), all.end(), [](const Confusion& a, const Confusion& b) {
    // Equal times: the fewer queries, the larger the share.
    return std::tuple(-a.times, a.queries, a.label, a.taken_for) <
           std::tuple(-b.times, b.queries, b.label, b.taken_for);
  });
  all.resize(std::min(all.size(), count));
  return all;
}

}  // namespace rk
