// libFuzzer target: any bytes are embeddings that fit together, or an InputError.
#include "engine/base/error.h"
#include "retrieval/files/embeddings_file.h"
#include "weights/hdf5/file.h"

#include <cmath>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const rk::EmbeddingSet set =
        rk::read_embeddings(rk::Hdf5Reader(std::as_bytes(std::span(data, size)), "fuzz"));
    const std::size_t rows = set.labels.size();
    const auto fits = [&](std::size_t count) { return count == 0 || count == rows; };
    if (set.dim < 1 || set.embeddings.size() != rows * static_cast<std::size_t>(set.dim) ||
        !fits(set.cameras.size()) || !fits(set.categories.size()) || !fits(set.paths.size())) {
      std::abort();
    }
    for (const float value : set.embeddings) {
      if (!std::isfinite(value)) std::abort();
    }
  } catch (const rk::InputError&) {
  }
  return 0;
}
