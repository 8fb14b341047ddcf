// Random evaluations around every edge of the counting: classes of different sizes in one vector
// and in one group of steps, class sizes around kCompareAtMost, numbers of rows around those of
// vectors and tiles, galleries, cameras, groups of queries.
//
// Embeddings are small integers times a power of two, so every inner product is exact in float32
// in any order, and the engine and brute force see the same ties.
#pragma once

#include "engine/base/integers.h"
#include "engine/base/random.h"
#include "retrieval/evaluate.h"
#include "retrieval/passes/count_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rk {

struct MixedCase {
  std::string what;
  EmbeddingSet queries;
  std::optional<EmbeddingSet> gallery;
  int threads = 1;
  EvaluateOptions options;
};

namespace mixed {

enum Sizes { kUniform, kZipf, kGroupEdges, kCompareEdges, kAny, kSizes };

inline std::int64_t class_size(CounterRandom& random, int sizes, std::int64_t place) {
  switch (sizes) {
    case kUniform: return 1 + random.below(40);
    case kZipf: return std::max(std::int64_t{1}, 90 / (place + 1));
    // Positives that fill groups of four steps or vectors exactly, one fewer and one more. A class
    // has one row more than each of its queries has positives.
    case kGroupEdges:
      return (random.below(2) == 0 ? 4 * random.below(6) : kColumnLanes * random.below(3)) +
             random.below(3) + (place % 2);
    case kCompareEdges: return kCompareAtMost - 2 + random.below(6);
    default: return class_size(random, static_cast<int>(random.below(kAny)), place);
  }
}

// Draws classes until `rows` are reached; returns their rows in random order. Larger values of
// `separation` move classes apart, so that ranks vary from chance to perfect.
inline EmbeddingSet draw_set(CounterRandom& random, std::int64_t rows, int sizes,
                             std::int64_t separation, std::int64_t dim, int cameras, float scale) {
  std::vector<std::int64_t> labels;
  for (std::int64_t place = 0; static_cast<std::int64_t>(labels.size()) < rows; ++place) {
    const std::int64_t size = class_size(random, sizes, place);
    labels.insert(labels.end(), static_cast<std::size_t>(size), place * 7 - 20);
  }
  labels.resize(static_cast<std::size_t>(rows));
  for (std::size_t i = labels.size(); i > 1; --i) {
    std::swap(labels[i - 1], labels[at(random.below(static_cast<std::int64_t>(i)))]);
  }
  EmbeddingSet set;
  set.dim = dim;
  for (const std::int64_t label : labels) {
    CounterRandom centre(5, 0, static_cast<std::uint64_t>(label));
    set.labels.push_back(label);
    if (cameras > 0) set.cameras.push_back(random.below(cameras));
    for (std::int64_t d = 0; d < dim; ++d) {
      const std::int64_t value = separation * (centre.below(3) - 1) + random.below(5) - 2;
      set.embeddings.push_back(static_cast<float>(value) * scale);
    }
  }
  return set;
}

}  // namespace mixed

// How far the AUC may be off: it is exact, but where a histogram takes the place of more positives
// than may be held in order. The error that the code under test allows itself is no measure of its
// own.
inline double permitted_auc_error(const EvaluateOptions& options) {
  return options.most_ordered < EvaluateOptions{}.most_ordered ? 1e-3 : 0;
}

inline MixedCase mixed_case(std::uint64_t seed, std::uint64_t index) {
  CounterRandom random(seed, 0, index);
  constexpr std::array<std::int64_t, 6> kEdges{kColumnLanes, 2 * kColumnLanes, 64, 128, 256, 320};
  constexpr std::array<std::int64_t, 4> kSeparations{0, 1, 3, 8};
  const auto rows = [&] {
    return random.below(2) == 0 ? 2 + random.below(350)
                                : kEdges[at(random.below(6))] + random.below(3) - 1;
  };
  const int sizes = static_cast<int>(random.below(mixed::kSizes));
  const std::int64_t separation = kSeparations[at(random.below(4))];
  const std::int64_t dim = 2 + random.below(6);
  const int cameras = random.below(3) == 0 ? 2 + static_cast<int>(random.below(3)) : 0;
  const float scale = random.below(2) == 0 ? 1.0F : 1.0F / 16;
  MixedCase out;
  out.queries = mixed::draw_set(random, rows(), sizes, separation, dim, cameras, scale);
  if (random.below(3) == 0) {
    out.gallery = mixed::draw_set(random, rows(), sizes, separation, dim, cameras, scale);
  }
  out.threads = 1 + static_cast<int>(random.below(3));
  out.options.per_query = true;
  out.options.pair_metrics = random.below(4) != 0;
  if (random.below(4) == 0) out.options.positives_bytes = 4096;
  if (random.below(4) == 0) out.options.most_ordered = 0;
  out.what = fmt::format(
      "case {}: {} rows of {}, sizes {}, separation {}, {} cameras, {} gallery rows, {} threads",
      index, out.queries.count(), dim, sizes, separation, cameras,
      out.gallery ? out.gallery->count() : 0, out.threads);
  return out;
}

}  // namespace rk
