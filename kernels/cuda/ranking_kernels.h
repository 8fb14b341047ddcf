// The kernels of long rankings that launch() is compiled for: X(kernel) for each.
#pragma once

#include "kernels/blocks/ranking_block.h"

#include <cstdint>

#define RK_RANKING_KERNELS_OF(X, Key) \
  X(KeyScores<Key>);                  \
  X(CountFlags<Key>);                 \
  X(WriteRanks<Key>);                 \
  X(MovePositives<Key>);              \
  X(KeyMoved<Key>);                   \
  X(NegativeGradients<Key>);          \
  X(PositiveGradients<Key>)

#define RK_RANKING_KERNELS(X)              \
  RK_RANKING_KERNELS_OF(X, std::uint32_t); \
  RK_RANKING_KERNELS_OF(X, std::uint64_t); \
  X(SumFlags);                             \
  X(SumLostPrecision)
