// k-means of embeddings, and how far the clusters are the classes (NMI).
//
// k-means: `clusters` rows are drawn for centres by k-means++ (Arthur and Vassilvitskii 2007: the
// next one with a chance proportional to its squared distance from the nearest centre), then
// `iterations` times every row goes to its nearest centre (the lower number among equally near
// ones) and every centre to the mean of its rows; then rows are assigned a last time. A centre
// without rows stays where it is. Fewer iterations are done where nothing moves any more: the rest
// would change nothing. Distances are those of the rows as given, by products in float32.
//
// The draws are exactly those of k-means++, though made in blocks: candidates are proposed by
// distances that are out of date, and taken with a chance of (distance now) / (distance then).
// Takes clusters x dim floats and some 40 MiB of tiles, never rows x clusters numbers.
#pragma once

#include "engine/device/context.h"
#include "retrieval/passes/embedding_set.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
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
  std::int64_t clusters = 0;          // asked for
  std::int64_t empty = 0;             // of these, without a row
  double squares = 0;                 // sum over rows of the squared distance to the centre
  int iterations = 0;                 // done until nothing moved
  std::size_t bytes = 0;              // taken beyond the input, at most
};

// The rows that k-means starts from, in the order drawn; where rows of other values run out, rows
// come again. nullopt when interrupted.
std::optional<std::vector<std::int64_t>> k_means_start(const Context& context,
                                                       const EmbeddingView& set,
                                                       const EmbeddingView* more,
                                                       const ClusteringOptions& options);

// nullopt when interrupted. `more` may be nullptr. InputError where float32 does not hold the inner
// products of any two rows (retrieval/passes/largest_score.h).
std::optional<Clustering> k_means(const Context& context, const EmbeddingView& set,
                                  const EmbeddingView* more, const ClusteringOptions& options);

// 2 I(U, V) / (H(U) + H(V)) of two labellings of the same rows, in [0, 1], from exact counts; 1
// where both are one class of all.
double normalized_mutual_information(std::span<const std::int64_t> u,
                                     std::span<const std::int64_t> v);

}  // namespace rk
