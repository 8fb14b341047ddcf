// k-means of embeddings, and the agreement of clusters with classes (NMI).
//
// k-means: k-means++ (Arthur and Vassilvitskii 2007) draws `clusters` rows as centres, each with a
// probability proportional to its squared distance from the nearest centre so far. Then, for
// `iterations` times, every row is assigned to its nearest centre (the lower number among equally
// near ones) and every centre moves to the mean of its rows; then rows are assigned a last time. A
// centre without rows stays where it is. Iterations end early when no centre moves: further ones
// would change nothing. Distances are those of the rows as given, by products in float32.
//
// Draws have exactly the distribution of k-means++, though they are made in blocks: candidates are
// proposed by outdated distances, and accepted with probability (distance now) / (distance then).
// Takes clusters x dim floats and some 40 MiB of tiles, never rows x clusters numbers.
#pragma once

#include "engine/device/context.h"
#include "retrieval/passes/embedding_set.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace rk {

struct ClusteringOptions {
  std::int64_t clusters = 1;  // 1 to the number of rows
  int iterations = 20;        // at least 1
  std::uint64_t seed = 0;
  std::function<void(double share_done)> progress;  // called by the calling thread, in [0, 1]
  std::function<bool()> interrupted;
};

struct Clustering {
  std::vector<std::int64_t> cluster;  // of every row of the set, then of every row of `more`
  // The row that each cluster started from, in the order drawn; if there are fewer distinct rows
  // than clusters, rows repeat.
  std::vector<std::int64_t> start;
  std::int64_t clusters = 0;  // as requested
  std::int64_t empty = 0;     // clusters without a row
  int iterations = 0;         // how many were done
};

// Returns nullopt if interrupted. `more` may be nullptr. Throws InputError if float32 cannot hold
// the inner products of any two rows (retrieval/passes/largest_score.h).
std::optional<Clustering> k_means(const Context& context, const EmbeddingView& set,
                                  const EmbeddingView* more, const ClusteringOptions& options);

}  // namespace rk
