// How evaluate() computes scores: first those of the positives, then all others, which are counted
// against them. On the CPU each thread computes tiles (retrieval/passes/score_tiles.h); on a GPU
// tiles have thousands of rows (retrieval/passes/gpu_score_pass.h).
#pragma once

#include "engine/device/context.h"
#include "retrieval/passes/class_order.h"
#include "retrieval/passes/embedding_set.h"
#include "retrieval/passes/pair_statistics.h"
#include "retrieval/passes/positives.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace rk {

struct ScoreTileShape {
  std::int64_t rows, columns;
};

class ScorePass {
 public:
  using Poll = std::function<bool(double share_done)>;  // false: gather() or count() stops

  virtual ~ScorePass() = default;

  // gather() writes the scores of all positives of a group of queries, in any order. The caller
  // sorts them in descending order; then count() writes their counts. `statistics` may be null.
  // Both return false if `poll` did.
  virtual bool gather(Positives& positives, const Poll& poll) = 0;
  virtual bool count(Positives& positives, PairStatistics* statistics, const Poll& poll) = 0;

  // Whether each pair of rows is scored once, for both.
  virtual bool symmetric() const = 0;
  virtual ScoreTileShape tile_shape() const = 0;
  // How many members count into `statistics` at the same time.
  virtual int counters() const = 0;
  // Whether equal rows give equal bits at any place in a tile.
  virtual bool position_independent() const = 0;
  virtual std::int64_t flops() const = 0;  // so far
  virtual std::size_t bytes() const = 0;   // the peak so far
};

// gallery == nullptr: the queries are searched among themselves; `symmetric`: by half of all tiles.
std::unique_ptr<ScorePass> make_host_score_pass(const Context& context, const ClassOrder& order,
                                                const EmbeddingView& queries,
                                                const EmbeddingView* gallery, bool symmetric);

}  // namespace rk
