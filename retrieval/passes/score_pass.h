// How evaluate() gets at scores: first those of the positives, then what all the others are counted
// against them for. On the CPU by tiles of each thread (retrieval/passes/score_tiles.h), on a GPU
// by tiles of thousands of rows (retrieval/passes/device_score_pass.h).
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

class ScorePass {
 public:
  using Poll = std::function<bool(double share_done)>;  // false: stop, which both functions return

  virtual ~ScorePass() = default;

  // Scores of all positives of a group of queries, in any order; next, their counts by the scores
  // in descending order. `statistics` may be null.
  virtual bool gather(Positives& positives, const Poll& poll) = 0;
  virtual bool count(Positives& positives, PairStatistics* statistics, const Poll& poll) = 0;

  // Whether each pair of rows is looked at once, for both.
  virtual bool symmetric() const = 0;
  // How many count into `statistics` at the same time.
  virtual int counters() const = 0;
  // Equal rows give equal bits wherever they lie in a tile.
  virtual bool position_independent() const = 0;
  virtual std::int64_t flops() const = 0;  // so far
  virtual std::size_t bytes() const = 0;   // at most, so far
};

// gallery == nullptr: the queries among themselves, where `symmetric` by half of all tiles.
std::unique_ptr<ScorePass> make_host_score_pass(const Context& context, const ClassOrder& order,
                                                const EmbeddingView& queries,
                                                const EmbeddingView* gallery, bool symmetric);

}  // namespace rk
