#include "retrieval/protocols/vehicleid_official.h"

#include "engine/base/error.h"
#include "engine/base/integers.h"
#include "retrieval/evaluate.h"
#include "retrieval/passes/undefined.h"

#include <cmath>
#include <map>
#include <numeric>

namespace rk {
namespace {

// Output number `index` of SplitMix64 from `seed`.
std::uint64_t split_mix(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

EmbeddingSet rows_of(const EmbeddingView& set, const std::vector<std::int64_t>& rows) {
  EmbeddingSet out;
  out.dim = set.dim;
  out.embeddings.reserve(rows.size() * at(set.dim));
  for (const std::int64_t row : rows) {
    const float* from = set.embeddings + row * set.dim;
    out.embeddings.insert(out.embeddings.end(), from, from + set.dim);
    out.labels.push_back(set.labels[row]);
  }
  return out;
}

DrawnMetric over_draws(std::vector<double> values) {
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const double x : values) squares += (x - mean) * (x - mean);
  const double deviation = n > 1 ? std::sqrt(squares / (n - 1)) : 0.0;
  return {std::move(values), mean, std::isnan(mean) ? mean : deviation};
}

}  // namespace

std::vector<std::int64_t> official_gallery(const EmbeddingView& set, int draw, std::uint64_t seed) {
  std::map<std::int64_t, std::vector<std::int64_t>> classes;
  for (std::int64_t i = 0; i < set.count; ++i) classes[set.labels[i]].push_back(i);
  std::vector<std::int64_t> gallery;
  std::uint64_t index = static_cast<std::uint64_t>(draw) * classes.size();
  for (const auto& [label, images] : classes) {
    gallery.push_back(images[split_mix(seed, index) % images.size()]);
    ++index;
  }
  return gallery;
}

std::optional<DrawnMetrics> vehicleid_official(const Context& context, const EmbeddingView& set,
                                               const DrawOptions& options) {
  expect(set.count > 0 && options.draws > 0,
         "[vehicleid_official] expected rows and draws, got {} "
         "and {}",
         set.count, options.draws);
  DrawnMetrics out;
  std::vector<std::vector<double>> recall(options.recall_at.size());
  std::vector<double> map;
  for (int draw = 0; draw < options.draws; ++draw) {
    const std::vector<std::int64_t> gallery_rows = official_gallery(set, draw, options.seed);
    std::vector<bool> in_gallery(at(set.count), false);
    for (const std::int64_t row : gallery_rows) in_gallery[at(row)] = true;
    std::vector<std::int64_t> query_rows;
    for (std::int64_t i = 0; i < set.count; ++i) {
      if (!in_gallery[at(i)]) query_rows.push_back(i);
    }
    out.num_queries = static_cast<std::int64_t>(query_rows.size());
    out.num_gallery = static_cast<std::int64_t>(gallery_rows.size());
    if (query_rows.empty()) {
      for (auto& values : recall) values.push_back(kUndefined);
      map.push_back(kUndefined);
      continue;
    }
    const EmbeddingSet queries = rows_of(set, query_rows), gallery = rows_of(set, gallery_rows);
    const EmbeddingView gallery_view = gallery.view();
    EvaluateOptions evaluation;
    evaluation.recall_at = options.recall_at;
    evaluation.pair_metrics = false;
    evaluation.interrupted = options.interrupted;
    if (options.progress) {
      evaluation.progress = [&](double done) { options.progress((draw + done) / options.draws); };
    }
    const auto metrics = evaluate(context, queries.view(), &gallery_view, evaluation);
    if (!metrics) return std::nullopt;
    for (std::size_t k = 0; k < recall.size(); ++k) recall[k].push_back(metrics->recall[k]);
    map.push_back(metrics->map);
  }
  for (auto& values : recall) out.recall.push_back(over_draws(std::move(values)));
  out.map = over_draws(std::move(map));
  return out;
}

}  // namespace rk
