#include "tools/common/similarity_counts.h"

#include <algorithm>
#include <cstddef>

namespace rk {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kBins = 100, kMostBins = 1000;

std::vector<std::int64_t> in_fewer_bins(const std::vector<std::int64_t>& counts) {
  std::vector<std::int64_t> out(kBins, 0);
  for (std::size_t i = 0; i < counts.size(); ++i) out[i * kBins / counts.size()] += counts[i];
  return out;
}

bool read_list(const ordered_json& counts, const char* name, std::size_t first, std::size_t bins,
               std::vector<std::int64_t>& out) {
  const auto list = counts.find(name);
  if (list == counts.end() || !list->is_array() || list->size() > bins - first) return false;
  out.assign(bins, 0);
  for (std::size_t i = 0; i < list->size(); ++i) {
    if (!(*list)[i].is_number_integer()) return false;
    out[first + i] = (*list)[i].get<std::int64_t>();
    if (out[first + i] < 0) return false;
  }
  return true;
}

}  // namespace

ordered_json similarity_counts_json(const Metrics& metrics) {
  if (metrics.pairs.positive_histogram.empty()) return ordered_json::object();
  const std::vector<std::int64_t> positives = in_fewer_bins(metrics.pairs.positive_histogram);
  const std::vector<std::int64_t> negatives = in_fewer_bins(metrics.pairs.negative_histogram);
  std::size_t first = 0, end = kBins;
  const auto empty = [&](std::size_t bin) { return positives[bin] + negatives[bin] == 0; };
  while (first < end && empty(first)) ++first;
  while (end > first && empty(end - 1)) --end;
  ordered_json out = {{"bins", kBins}, {"first", first}};
  for (auto [name, counts] : {std::pair{"positives", &positives}, {"negatives", &negatives}}) {
    ordered_json list = ordered_json::array();
    for (std::size_t bin = first; bin < end; ++bin) list.push_back((*counts)[bin]);
    out[name] = std::move(list);
  }
  return out;
}

SimilarityCounts read_similarity_counts(const ordered_json& counts) {
  const auto number = [&](const char* name, std::size_t most) -> std::size_t {
    const auto found = counts.find(name);
    if (found == counts.end() || !found->is_number_integer()) return most + 1;
    return std::min(found->get<std::size_t>(), most + 1);  // negative: becomes very large
  };
  if (!counts.is_object()) return {};
  const std::size_t bins = number("bins", kMostBins), first = number("first", kMostBins);
  SimilarityCounts out;
  if (bins > kMostBins || first > bins ||
      !read_list(counts, "positives", first, bins, out.positives) ||
      !read_list(counts, "negatives", first, bins, out.negatives)) {
    return {};
  }
  return out;
}

}  // namespace rk
