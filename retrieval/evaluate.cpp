#include "retrieval/evaluate.h"

#include "engine/base/error.h"
#include "engine/base/parallel.h"
#include "retrieval/class_distances.h"
#include "retrieval/passes/class_order.h"
#include "retrieval/passes/device_score_pass.h"
#include "retrieval/passes/largest_score.h"
#include "retrieval/passes/pair_statistics.h"
#include "retrieval/passes/positives.h"
#include "retrieval/passes/rank_counter.h"
#include "retrieval/passes/score_pass.h"
#include "retrieval/passes/score_tiles.h"
#include "retrieval/rank_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace rk {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kGatherShare = 0.02;  // of the progress shown

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// Groups of queries whose positives fit into memory together, split at multiples of the tile's
// rows.
std::vector<Range> query_groups(const ClassOrder& order, std::int64_t most_positives) {
  const auto count = static_cast<std::int64_t>(order.queries.size());
  std::vector<Range> groups;
  std::int64_t begin = 0, positives = 0;
  for (std::int64_t tile = 0; tile < count; tile += ScoreTiles::kTileRows) {
    const std::int64_t end = std::min(tile + ScoreTiles::kTileRows, count);
    std::int64_t more = 0;
    for (std::int64_t q = tile; q < end; ++q) more += order.queries[at(q)].relevant();
    if (tile > begin && positives + more > most_positives) {
      groups.push_back({begin, tile});
      begin = tile;
      positives = 0;
    }
    positives += more;
  }
  groups.push_back({begin, count});
  return groups;
}

void count_pairs(const ClassOrder& order, std::int64_t gallery_count, Metrics& out) {
  for (const ClassOrder::Query& query : order.queries) {
    out.num_pairs_positive += query.relevant();
    out.num_pairs_negative += gallery_count - (query.class_end - query.class_begin);
    out.num_queries_valid += query.relevant() > 0 ? 1 : 0;
  }
}

PerQuery make_per_query(std::int64_t n) {
  PerQuery out;
  for (auto* values : {&out.ap, &out.ap_at_r, &out.r_precision}) values->assign(at(n), kNaN);
  for (auto* values : {&out.first_hit_rank, &out.num_relevant, &out.num_candidates}) {
    values->assign(at(n), 0);
  }
  return out;
}

void take_ranks(const Context& context, const ClassOrder& order, std::int64_t gallery_count,
                Positives& positives, PerQuery& out) {
  const Range rows = positives.rows();
  parallel_for(context.threads(), rows.size(), [&](std::int64_t i, int) {
    const std::int64_t q = rows.begin + i;
    const ClassOrder::Query& query = order.queries[at(q)];
    const std::size_t row = at(order.query_row[at(q)]);
    out.num_relevant[row] = query.relevant();
    out.num_candidates[row] = gallery_count - (query.removed_end - query.removed_begin);
    if (query.relevant() == 0) return;
    const RankMetrics m = rank_metrics(positives.counts(q));
    out.ap[row] = m.ap;
    out.ap_at_r[row] = m.ap_at_r;
    out.r_precision[row] = m.r_precision;
    out.first_hit_rank[row] = m.first_hit_rank;
  });
}

double mean_of_valid(const std::vector<double>& values) {
  double sum = 0;
  std::int64_t count = 0;
  for (const double v : values) {
    if (std::isnan(v)) continue;
    sum += v;
    ++count;
  }
  return count > 0 ? sum / static_cast<double>(count) : kNaN;
}

void summarise(const EvaluateOptions& options, const PerQuery& queries, Metrics& out) {
  out.recall_at = options.recall_at;
  for (const std::int64_t k : options.recall_at) {
    const auto hits = std::count_if(queries.first_hit_rank.begin(), queries.first_hit_rank.end(),
                                    [&](std::int64_t rank) { return rank >= 1 && rank <= k; });
    out.recall.push_back(out.num_queries_valid > 0 ? static_cast<double>(hits) /
                                                         static_cast<double>(out.num_queries_valid)
                                                   : kNaN);
  }
  out.map = mean_of_valid(queries.ap);
  out.map_at_r = mean_of_valid(queries.ap_at_r);
  out.r_precision = mean_of_valid(queries.r_precision);
}

void check(const EmbeddingView& queries, const EmbeddingView* gallery) {
  expect(queries.count > 0 && queries.dim > 0,
         "[evaluate] expected rows and dimensions, got {} rows of {}", queries.count, queries.dim);
  if (gallery == nullptr) return;
  expect(gallery->count > 0 && gallery->dim == queries.dim,
         "[evaluate] expected a gallery of rows of {}, got {} rows of {}", queries.dim,
         gallery->count, gallery->dim);
}

std::unique_ptr<ScorePass> make_pass(const Context& context, const ClassOrder& order,
                                     const EmbeddingView& queries, const EmbeddingView* gallery,
                                     bool symmetric) {
  if (context.on_gpu()) return make_device_score_pass(context, order, queries, gallery);
  return make_host_score_pass(context, order, queries, gallery, symmetric);
}

// Its score, and the count of what comes before it.
constexpr std::size_t kBytesEachPositive = sizeof(float) + sizeof(std::int32_t);

}  // namespace

double Metrics::recall_for(std::int64_t k) const {
  const auto found = std::find(recall_at.begin(), recall_at.end(), k);
  return found == recall_at.end() ? kNaN : recall[at(found - recall_at.begin())];
}

std::int64_t gpu_evaluation_bytes(std::int64_t rows, std::int64_t dim, std::int64_t positives,
                                  const EvaluateOptions& options) {
  // A group has at least one tile of queries.
  const auto most = static_cast<std::int64_t>(options.positives_bytes / kBytesEachPositive);
  return device_score_bytes(rows, dim,
                            std::min(positives, std::max(most, ScoreTiles::kTileRows * rows)));
}

std::optional<Metrics> evaluate(const Context& context, const EmbeddingView& queries,
                                const EmbeddingView* gallery, const EvaluateOptions& options) {
  check(queries, gallery);
  const double largest = largest_score(context, queries, gallery);
  const EmbeddingView& candidates = gallery != nullptr ? *gallery : queries;
  const ClassOrder order = make_class_order(queries, gallery);

  Metrics out{};
  out.num_queries = queries.count;
  out.num_gallery = candidates.count;
  out.self_retrieval = gallery == nullptr;
  out.camera_rule = queries.cameras != nullptr && candidates.cameras != nullptr;
  count_pairs(order, candidates.count, out);

  const std::size_t symmetric_bytes =
      at(out.num_pairs_positive) *
      (kBytesEachPositive + RankCounter::symmetric_bytes(context.threads()));
  const std::unique_ptr<ScorePass> pass =
      make_pass(context, order, queries, gallery,
                out.self_retrieval && symmetric_bytes <= options.positives_bytes);
  out.symmetric = pass->symmetric();
  out.ties_exact = pass->position_independent();
  const std::vector<Range> groups =
      out.symmetric
          ? std::vector<Range>{{0, queries.count}}
          : query_groups(order,
                         static_cast<std::int64_t>(options.positives_bytes / kBytesEachPositive));
  std::optional<PairStatistics> statistics;
  if (options.pair_metrics) statistics.emplace(pass->counters(), queries.count, largest);

  PerQuery per_query = make_per_query(queries.count);
  std::size_t group_bytes = 0;
  for (const Range group : groups) {
    const auto share = [&](double part) {
      return (static_cast<double>(group.begin) + part * static_cast<double>(group.size())) /
             static_cast<double>(queries.count);
    };
    const auto poll = [&](double done) {
      if (options.progress) options.progress(share(done));
      return !options.interrupted || !options.interrupted();
    };
    Positives positives(order, group);
    if (!pass->gather(positives, [&](double done) { return poll(done * kGatherShare); })) {
      return std::nullopt;
    }
    positives.sort_scores(order, context.threads());
    if (statistics) {
      statistics->add_positives(positives.all_scores());
      if (groups.size() == 1 && positives.total() <= kMostOrderedScores) {
        statistics->look_up_exactly(positives.all_scores());
      }
    }
    if (!pass->count(positives, statistics ? &*statistics : nullptr,
                     [&](double done) { return poll(kGatherShare + done * (1 - kGatherShare)); })) {
      return std::nullopt;
    }
    take_ranks(context, order, candidates.count, positives, per_query);
    group_bytes = std::max(group_bytes, positives.bytes());
  }

  summarise(options, per_query, out);
  if (statistics) out.pairs = statistics->result(out.symmetric);
  const ClassDistances distances = class_distances(context, queries, gallery);
  out.dists_intra = distances.intra;
  out.dists_inter = distances.inter;

  out.gemm_flops = pass->flops();
  out.bytes_reserved = order.bytes() + pass->bytes() + group_bytes +
                       (statistics ? statistics->bytes() : 0) + at(queries.count) * 6 * 8;
  if (options.per_query) out.per_query = std::move(per_query);
  return out;
}

}  // namespace rk
