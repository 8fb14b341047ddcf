// Made-up data for the loss tests: unit embeddings near the centres of their classes, classes of
// any size in any order, labels beyond 2^40; memory, image_ids, duplicates and ties on request.
#pragma once

#include "engine/base/random.h"
#include "tools/common/loss_file.h"

#include <cstdint>

namespace rk::made_up {

struct Wanted {
  std::int64_t rows = 12;
  std::int64_t memory = 0;
  std::int64_t dim = 7;
  std::int64_t classes = 3;
  bool image_ids = false;
};

// For losses of this kind. Float values, so that both precisions see the same numbers.
LossData<double> data(LossKind kind, const Wanted& wanted, std::uint64_t seed);
// The same with many duplicates and ties: 16 dimensions of +-1/4 (scores: multiples of 1/8), so
// that every similarity is a multiple of 1/8, exact in float and in any order of summation.
LossData<double> tied(LossKind kind, const Wanted& wanted, std::uint64_t seed);
// Sizes from 2 to 24 rows, with and without memory, drawn from the seed.
Wanted sizes(LossKind kind, std::uint64_t seed);

LossData<float> as_float(const LossData<double>& data);

}  // namespace rk::made_up
