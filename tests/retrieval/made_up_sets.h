// Made-up embeddings for the tests of evaluations.
#pragma once

#include "engine/base/random.h"
#include "retrieval/passes/embedding_set.h"

#include <cmath>
#include <cstdint>
#include <vector>

namespace rk {

// Small multiples of 1/8: every inner product is exact in float32 in any order, so the engine and
// the reference see the same ties, and there are many.
inline EmbeddingSet grid_set(std::int64_t count, std::int64_t dim, std::int64_t classes,
                             int cameras = 0, std::uint64_t seed = 1) {
  EmbeddingSet set;
  set.dim = dim;
  for (std::int64_t i = 0; i < count; ++i) {
    CounterRandom random(seed, 0, static_cast<std::uint64_t>(i));
    // Squared, so that classes differ in size.
    const double u = random.uniform();
    set.labels.push_back(static_cast<std::int64_t>(u * u * static_cast<double>(classes)) - 3);
    if (cameras > 0) set.cameras.push_back(random.below(cameras));
    for (std::int64_t d = 0; d < dim; ++d) {
      set.embeddings.push_back(static_cast<float>(random.below(5) - 2) / 8.0F);
    }
  }
  return set;
}

inline EmbeddingSet unit_set(std::int64_t count, std::int64_t dim, std::int64_t classes) {
  EmbeddingSet set;
  set.dim = dim;
  for (std::int64_t i = 0; i < count; ++i) {
    CounterRandom random(7, 0, static_cast<std::uint64_t>(i));
    CounterRandom centre(7, 1, static_cast<std::uint64_t>(i % classes));
    set.labels.push_back(i % classes);
    std::vector<double> row;
    double squares = 0;
    for (std::int64_t d = 0; d < dim; ++d) {
      row.push_back(random.normal() + centre.normal());
      squares += row.back() * row.back();
    }
    for (const double x : row) set.embeddings.push_back(static_cast<float>(x / std::sqrt(squares)));
  }
  return set;
}

}  // namespace rk
