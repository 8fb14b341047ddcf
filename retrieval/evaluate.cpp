#include "retrieval/evaluate.h"

#include "engine/base/error.h"
#include "engine/base/integers.h"
#include "engine/base/parallel.h"
#include "retrieval/class_distances.h"
#include "retrieval/passes/class_order.h"
#include "retrieval/passes/gpu_score_pass.h"
#include "retrieval/passes/largest_score.h"
#include "retrieval/passes/pair_statistics.h"
#include "retrieval/passes/positives.h"
#include "retrieval/passes/rank_counter.h"
#include "retrieval/passes/score_pass.h"
#include "retrieval/passes/score_tiles.h"
#include "retrieval/passes/undefined.h"
#include "retrieval/rank_metrics.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace rk {
namespace {

constexpr std::int64_t kMostRows = std::numeric_limits<std::int32_t>::max();  // ranks are 32-bit
// For the progress shown: a score that is counted takes about as long as two that are only copied.
constexpr double kCounted = 2;

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

// How many scores are in the tiles that hold positives of these queries.
double scores_around_positives(const ClassOrder& order, Range rows, ScoreTileShape tile) {
  const std::int64_t candidates = std::ssize(order.gallery_row);
  double scores = 0;
  for (std::int64_t begin = rows.begin; begin < rows.end; begin += tile.rows) {
    const std::int64_t end = std::min(begin + tile.rows, rows.end);
    const std::int64_t first = order.queries[at(begin)].class_begin / tile.columns * tile.columns;
    const std::int64_t last = round_up(order.queries[at(end - 1)].class_end, tile.columns);
    scores +=
        static_cast<double>(end - begin) * static_cast<double>(std::min(last, candidates) - first);
  }
  return scores;
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
  for (auto* values : {&out.ap, &out.ap_at_r, &out.r_precision}) values->assign(at(n), kUndefined);
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
  return count > 0 ? sum / static_cast<double>(count) : kUndefined;
}

void summarise(const EvaluateOptions& options, const PerQuery& queries, Metrics& out) {
  out.recall_at = options.recall_at;
  for (const std::int64_t k : options.recall_at) {
    const auto hits = std::count_if(queries.first_hit_rank.begin(), queries.first_hit_rank.end(),
                                    [&](std::int64_t rank) { return rank >= 1 && rank <= k; });
    out.recall.push_back(out.num_queries_valid > 0 ? static_cast<double>(hits) /
                                                         static_cast<double>(out.num_queries_valid)
                                                   : kUndefined);
  }
  out.map = mean_of_valid(queries.ap);
  out.map_at_r = mean_of_valid(queries.ap_at_r);
  out.r_precision = mean_of_valid(queries.r_precision);
}

void check(const EmbeddingView& queries, const EmbeddingView* gallery) {
  expect(queries.count > 0 && queries.dim > 0,
         "[evaluate] expected rows and dimensions, got {} rows of {}", queries.count, queries.dim);
  expect(std::max(queries.count, gallery != nullptr ? gallery->count : 0) <= kMostRows,
         "[evaluate] expected at most {} rows, got {} queries and {} candidates", kMostRows,
         queries.count, gallery != nullptr ? gallery->count : queries.count);
  if (gallery == nullptr) return;
  expect(gallery->count > 0 && gallery->dim == queries.dim,
         "[evaluate] expected a gallery of rows of {}, got {} rows of {}", queries.dim,
         gallery->count, gallery->dim);
}

std::unique_ptr<ScorePass> make_pass(const Context& context, const ClassOrder& order,
                                     const EmbeddingView& queries, const EmbeddingView* gallery,
                                     bool symmetric) {
  if (context.on_gpu()) return make_gpu_score_pass(context, order, queries, gallery);
  return make_host_score_pass(context, order, queries, gallery, symmetric);
}

// Of the strips of columns that are counted one after the other, the one with the most.
std::int64_t most_positives_in_strip(const ClassOrder& order, std::int64_t dim) {
  const std::int64_t columns = ScoreTiles::strip_columns(dim);
  std::int64_t most = 0, count = 0;
  for (std::size_t c = 0; c < order.queries.size(); ++c) {
    if (c % at(columns) == 0) count = 0;
    most = std::max(most, count += order.queries[c].relevant());
  }
  return most;
}

// Its score, and the count of what comes before it.
constexpr std::size_t kBytesEachPositive = sizeof(float) + sizeof(std::int32_t);

class Evaluation {
 public:
  Evaluation(const Context& context, const EmbeddingView& queries, const EmbeddingView* gallery,
             double largest_score, const EvaluateOptions& options)
      : context_(context),
        queries_(queries),
        gallery_(gallery),
        options_(options),
        order_(make_class_order(queries, gallery)),
        per_query_(make_per_query(queries.count)) {
    const EmbeddingView& candidates = gallery != nullptr ? *gallery : queries;
    out_.num_queries = queries.count;
    out_.num_gallery = candidates.count;
    out_.self_retrieval = gallery == nullptr;
    out_.camera_rule = queries.cameras != nullptr && candidates.cameras != nullptr;
    count_pairs(order_, candidates.count, out_);

    const std::size_t symmetric_bytes = at(out_.num_pairs_positive) * kBytesEachPositive +
                                        at(most_positives_in_strip(order_, queries.dim)) *
                                            RankCounter::symmetric_bytes(context.threads());
    pass_ = make_pass(context, order_, queries, gallery,
                      out_.self_retrieval && symmetric_bytes <= options.positives_bytes);
    out_.symmetric = pass_->symmetric();
    out_.ties_exact = pass_->position_independent();
    const auto most = static_cast<std::int64_t>(options.positives_bytes / kBytesEachPositive);
    groups_ = out_.symmetric ? std::vector<Range>{{0, queries.count}} : query_groups(order_, most);
    for (const Range rows : groups_) {
      all_work_ += (orders_first() ? 2 : 1) * gathering(rows) + counting(rows);
    }
    if (options.pair_metrics) {
      statistics_.emplace(pass_->counters(), queries.count, largest_score);
    }
  }

  // Null if it was interrupted.
  std::optional<Metrics> run() {
    if (orders_first() && !order_all_positives()) return std::nullopt;
    for (const Range group : groups_) {
      if (!rank(group)) return std::nullopt;
    }
    summarise(options_, per_query_, out_);
    if (statistics_) out_.pairs = statistics_->result(out_.symmetric);
    const ClassDistances distances = class_distances(context_, queries_, gallery_);
    out_.dists_intra = distances.intra;
    out_.dists_inter = distances.inter;
    out_.gemm_flops = pass_->flops();
    out_.bytes_reserved = order_.bytes() + pass_->bytes() + group_bytes_ +
                          (statistics_ ? statistics_->bytes() : 0) +
                          at(queries_.count * PerQuery::kBytes);
    if (options_.per_query) out_.per_query = std::move(per_query_);
    return std::move(out_);
  }

 private:
  // What counts as done is in scores that are only copied.
  double gathering(Range rows) const {
    return scores_around_positives(order_, rows, pass_->tile_shape());
  }
  double counting(Range rows) const {
    return kCounted * static_cast<double>(rows.size()) * static_cast<double>(out_.num_gallery) /
           (out_.symmetric ? 2 : 1);
  }

  // Runs f(poll), a part of the pass that takes `work`.
  template <class F> bool do_part(double work, F&& f) {
    const bool finished = f([&](double share_of_part) {
      if (options_.progress) options_.progress((done_ + share_of_part * work) / all_work_);
      return !options_.interrupted || !options_.interrupted();
    });
    done_ += work;
    return finished;
  }

  bool gather(Positives& positives) {
    return do_part(gathering(positives.rows()),
                   [&](const ScorePass::Poll& poll) { return pass_->gather(positives, poll); });
  }

  bool ordered() const {
    return options_.pair_metrics && out_.num_pairs_positive <= options_.most_ordered;
  }
  // The exact AUC needs the positives of all groups before the first negative.
  bool orders_first() const { return ordered() && groups_.size() > 1; }

  bool order_all_positives() {
    const Buffer scores = Buffer::of<float>(out_.num_pairs_positive);
    auto* next = scores.as<float>();
    for (const Range rows : groups_) {
      Positives group(order_, rows);
      if (!gather(group)) return false;
      next = std::ranges::copy(group.all_scores(), next).out;
    }
    statistics_->look_up_exactly(context_.threads(),
                                 {scores.as<const float>(), at(out_.num_pairs_positive)});
    return true;
  }

  bool rank(Range group) {
    Positives positives(order_, group);
    if (!gather(positives)) return false;
    positives.sort_scores(order_, context_.threads());
    if (statistics_) {
      statistics_->add_positives(positives.all_scores());
      if (ordered() && groups_.size() == 1) {
        statistics_->look_up_exactly(context_.threads(), positives.all_scores());
      }
    }
    PairStatistics* statistics = statistics_ ? &*statistics_ : nullptr;
    if (!do_part(counting(group), [&](const ScorePass::Poll& poll) {
          return pass_->count(positives, statistics, poll);
        })) {
      return false;
    }
    take_ranks(context_, order_, out_.num_gallery, positives, per_query_);
    group_bytes_ = std::max(group_bytes_, positives.bytes());
    return true;
  }

  const Context& context_;
  const EmbeddingView& queries_;
  const EmbeddingView* gallery_;
  const EvaluateOptions& options_;
  ClassOrder order_;
  std::unique_ptr<ScorePass> pass_;
  std::vector<Range> groups_;
  std::optional<PairStatistics> statistics_;
  PerQuery per_query_;
  std::size_t group_bytes_ = 0;
  double done_ = 0, all_work_ = 0;
  Metrics out_{};
};

}  // namespace

double Metrics::recall_for(std::int64_t k) const {
  const auto found = std::find(recall_at.begin(), recall_at.end(), k);
  return found == recall_at.end() ? kUndefined : recall[at(found - recall_at.begin())];
}

std::int64_t gpu_evaluation_bytes(std::int64_t rows, std::int64_t dim, std::int64_t positives,
                                  const EvaluateOptions& options) {
  // A group has at least one tile of queries.
  const auto most = static_cast<std::int64_t>(options.positives_bytes / kBytesEachPositive);
  return device_score_bytes(rows, dim,
                            std::min(positives, std::max(most, ScoreTiles::kTileRows * rows)),
                            positives <= options.most_ordered ? positives : 0);
}

std::optional<Metrics> evaluate(const Context& context, const EmbeddingView& queries,
                                const EmbeddingView* gallery, const EvaluateOptions& options) {
  check(queries, gallery);
  const double largest = largest_score(context, queries, gallery);
  return Evaluation(context, queries, gallery, largest, options).run();
}

}  // namespace rk
