// VehicleID's official protocol (Liu et al. 2016): one random image of each class is the gallery,
// all others are queries, ten times over.
//
// In draw t, image number z[t C + j] mod n_j of class j goes into the gallery: the C classes are in
// the order of their labels, the n_j images of class j in the order of their rows, and z is the
// output of SplitMix64 (Steele et al. 2014) from the seed. Every query has one relevant candidate,
// so its average precision is 1 / rank. Ranks as in retrieval/evaluate.h; cameras remove nothing.
#pragma once

#include "engine/device/context.h"
#include "retrieval/passes/embedding_set.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace rk {

struct DrawOptions {
  std::vector<std::int64_t> recall_at{1, 5};
  int draws = 10;
  std::uint64_t seed = 0;
  std::function<void(double share_done)> progress;
  std::function<bool()> interrupted;
};

struct DrawnMetric {
  std::vector<double> per_draw;  // NaN if no class has two images
  double mean, deviation;        // deviation of the draws: sqrt(sum (x - mean)^2 / (draws - 1))
};

struct DrawnMetrics {
  std::int64_t num_queries = 0, num_gallery = 0;  // of each draw
  std::vector<DrawnMetric> recall;                // of each k of recall_at
  DrawnMetric map;
};

// The rows of one draw's gallery, by class.
std::vector<std::int64_t> official_gallery(const EmbeddingView& set, int draw, std::uint64_t seed);

// Returns nullopt if interrupted. Takes as much memory as the embeddings: each draw copies them
// into queries and gallery.
std::optional<DrawnMetrics> vehicleid_official(const Context& context, const EmbeddingView& set,
                                               const DrawOptions& options);

}  // namespace rk
