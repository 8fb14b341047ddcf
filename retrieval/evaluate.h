// Retrieval metrics of a set of embeddings, in one blocked pass that never holds an N x N matrix.
//
// Score s(q, g) = inner product of the rows as given. Candidates of q: every other row (q itself is
// removed by index), or every row of the gallery if there is one; with cameras on both sides,
// candidates with q's label and q's camera are removed. R = candidates with q's label.
//   rank_j = j + #{irrelevant candidates with score >= s_j},   j = 1..R by descending score:
// irrelevant candidates win ties. recall@k, R-precision, MAP@R and mAP are means over the queries
// with R > 0; AUC, JSD, means and variances are over all (query, candidate) pairs. Undefined values
// are NaN. Throws InputError if float32 cannot hold the inner products
// (retrieval/passes/largest_score.h).
#pragma once

#include "engine/device/context.h"
#include "retrieval/passes/embedding_set.h"
#include "retrieval/passes/pair_metrics.h"
#include "retrieval/passes/positive_order.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace rk {

struct EvaluateOptions {
  std::vector<std::int64_t> recall_at{1, 2, 4, 8, 10, 100, 1000};
  bool pair_metrics = true;  // AUC, JSD, means and variances
  bool per_query = false;    // fill Metrics::per_query
  // Bytes for the positives' scores and counts. If they fit, self-retrieval on the CPU computes
  // only half of S = S^T; if not, queries are processed in groups and all of S is computed.
  std::size_t positives_bytes = std::size_t{1} << 29;
  // With so many positive pairs or fewer, their scores are held in order and the AUC is exact.
  std::int64_t most_ordered = PositiveOrder::kMost;
  std::function<void(double share_done)> progress;  // called by the calling thread, in [0, 1]
  std::function<bool()> interrupted;  // polled every few milliseconds to tenths of a second
};

// One entry per query, in the order of the input.
struct PerQuery {
  std::vector<double> ap, ap_at_r, r_precision;  // NaN if R = 0
  std::vector<std::int64_t> first_hit_rank;      // rank_1; 0 if R = 0
  std::vector<std::int64_t> num_relevant, num_candidates;

  static constexpr std::int64_t kBytes = std::int64_t{6} * 8;  // of a query
};

struct Metrics {
  std::int64_t num_queries = 0, num_queries_valid = 0, num_gallery = 0;
  std::int64_t num_pairs_positive = 0, num_pairs_negative = 0;  // ordered pairs

  std::vector<std::int64_t> recall_at;  // the k of recall[i]
  std::vector<double> recall;
  double r_precision, map_at_r, map;

  PairMetrics pairs;  // of scores

  double dists_intra, dists_inter;  // cosine distances (retrieval/class_distances.h)

  PerQuery per_query;  // empty unless asked for

  bool self_retrieval = true;
  bool camera_rule = false;
  bool symmetric = false;  // half of S = S^T was computed
  bool ties_exact = true;  // equal rows gave equal bits at any place in a tile (checked)
  std::int64_t gemm_flops = 0;
  std::size_t bytes_reserved = 0;  // all memory the pass took beyond its input

  // NaN if recall_at does not contain k.
  double recall_for(std::int64_t k) const;
};

// Returns nullopt if options.interrupted() returned true. `gallery` may be nullptr.
std::optional<Metrics> evaluate(const Context& context, const EmbeddingView& queries,
                                const EmbeddingView* gallery = nullptr,
                                const EvaluateOptions& options = {});

// The GPU's memory that evaluate() takes at most there for `rows` embeddings among themselves with
// so many positive pairs.
std::int64_t gpu_evaluation_bytes(std::int64_t rows, std::int64_t dim, std::int64_t positives,
                                  const EvaluateOptions& options = {});

}  // namespace rk
