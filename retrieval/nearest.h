// The k best-scoring candidates of each query, exactly, without ever holding all scores.
//
// Score s(q, g) = inner product of the rows as given. Candidates as in retrieval/evaluate.h: every
// other row (q itself is removed by index), or every row of the gallery; with cameras on both
// sides, those with q's label and q's camera are removed. Results are by descending score, ties as
// NearestOptions says. Memory: 8 bytes for each of the k results of each query, and the tiles of a
// strip. Throws InputError if float32 cannot hold the inner products
// (retrieval/passes/largest_score.h).
#pragma once

#include "engine/base/integers.h"
#include "engine/device/context.h"
#include "retrieval/passes/embedding_set.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace rk {

struct Neighbour {
  float score;
  std::int32_t row;  // of the gallery
};

class Neighbours {
 public:
  Neighbours(std::int64_t queries, std::int64_t k)
      : k_(k), found_(at(queries * k)), counts_(at(queries)) {}

  std::int64_t queries() const { return static_cast<std::int64_t>(counts_.size()); }
  std::int64_t k() const { return k_; }
  // Best first; fewer than k if there are fewer candidates.
  std::span<const Neighbour> of(std::int64_t query) const {
    return {found_.data() + query * k_, at(counts_[at(query)])};
  }

  // For the code that fills it: room for k neighbours, and how many are set.
  std::span<Neighbour> room(std::int64_t query) { return {found_.data() + query * k_, at(k_)}; }
  std::int32_t& count(std::int64_t query) { return counts_[at(query)]; }

 private:
  std::int64_t k_;
  std::vector<Neighbour> found_;      // (queries, k)
  std::vector<std::int32_t> counts_;  // (queries)
};

// Order of candidates with equal scores. kByRow: by ascending row. kOwnClassLast: first those of
// other classes than the query's, as the metrics rank them (retrieval/evaluate.h); each group by
// ascending row.
enum class Ties : std::uint8_t { kByRow, kOwnClassLast };

struct NearestOptions {
  std::int64_t k = 10;  // at least 1; if there are fewer candidates: all of them
  Ties ties = Ties::kByRow;
  std::function<void(double share_done)> progress;  // called by the calling thread, in [0, 1]
  std::function<bool()> interrupted;                // polled between strips of tiles
};

// Returns nullopt if options.interrupted() returned true. `gallery` may be nullptr. Labels are read
// only if both sides have cameras, or ties are by class. At most 2^31 - 1 rows on either side.
std::optional<Neighbours> nearest(const Context& context, const EmbeddingView& queries,
                                  const EmbeddingView* gallery, const NearestOptions& options);

}  // namespace rk
