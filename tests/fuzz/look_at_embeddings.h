// What must hold of embeddings that were read without an InputError.
#pragma once

#include "retrieval/files/embeddings_file.h"
#include "weights/hdf5/file.h"

#include <cmath>
#include <cstdlib>

namespace rk {

inline void look_at_embeddings(const Hdf5Reader& file) {
  const EmbeddingSet set = read_embeddings(file);
  const std::size_t rows = set.labels.size();
  const auto fits = [&](std::size_t count) { return count == 0 || count == rows; };
  if (set.dim < 1 || set.embeddings.size() != rows * static_cast<std::size_t>(set.dim) ||
      !fits(set.cameras.size()) || !fits(set.categories.size()) || !fits(set.paths.size())) {
    std::abort();
  }
  for (const float value : set.embeddings) {
    if (!std::isfinite(value)) std::abort();
  }
}

}  // namespace rk
