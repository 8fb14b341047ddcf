// The scores of every query's relevant candidates, and how many irrelevant ones come before each.
//
// For query position q and j = 0..R-1: scores(q)[j] descending, counts(q)[j] = number of irrelevant
// candidates with a score >= scores(q)[j]; the rank is j + 1 + counts(q)[j].
#pragma once

#include "engine/base/integers.h"
#include "engine/device/buffer.h"
#include "engine/device/context.h"
#include "retrieval/passes/class_order.h"
#include "retrieval/passes/score_tiles.h"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace rk {

class Positives {
 public:
  // For the queries at positions `rows`, with room for all their positives; counts start at zero.
  Positives(const ClassOrder& order, Range rows);

  Range rows() const { return rows_; }
  std::int64_t total() const { return offsets_.back(); }
  std::int64_t count(std::int64_t q) const { return end(q) - begin(q); }
  std::span<float> scores(std::int64_t q) { return {scores_.as<float>() + begin(q), size(q)}; }
  std::span<std::int32_t> counts(std::int64_t q) {
    return {counts_.as<std::int32_t>() + begin(q), size(q)};
  }
  std::span<const float> all_scores() const {
    return {scores_.as<const float>(), static_cast<std::size_t>(total())};
  }
  std::span<float> all_scores() { return {scores_.as<float>(), static_cast<std::size_t>(total())}; }
  std::span<std::int32_t> all_counts() {
    return {counts_.as<std::int32_t>(), static_cast<std::size_t>(total())};
  }
  std::size_t bytes() const {
    return scores_.bytes() + counts_.bytes() + offsets_.size() * sizeof(std::int64_t);
  }

  // Computes the tiles that hold positives and copies their scores. Returns false if `poll` did.
  bool gather(const ClassOrder& order, ScoreTiles& tiles, const std::function<bool(double)>& poll);
  // Sorts each query's scores in descending order, but for queries without irrelevant candidates,
  // of which nothing will be counted.
  void sort_scores(const ClassOrder& order, int threads);
  // For queries with more positives than `compared`, counts hold the number of candidates between
  // one score and the one before it: replaces them by their running sums.
  void sum_counts_between(int threads, std::int64_t compared);

 private:
  std::int64_t begin(std::int64_t q) const { return offsets_[at(q - rows_.begin)]; }
  std::int64_t end(std::int64_t q) const {
    return offsets_[static_cast<std::size_t>(q - rows_.begin) + 1];
  }
  std::size_t size(std::int64_t q) const { return static_cast<std::size_t>(count(q)); }

  Range rows_;
  std::vector<std::int64_t> offsets_;
  Buffer scores_, counts_;
};

}  // namespace rk
