// The kernels of an evaluation that launch() is compiled for: X(kernel) for each.
#pragma once

#include "kernels/blocks/score_block.h"

#define RK_SCORE_KERNELS(X) \
  X(GatherPositives);       \
  X(CountScores);           \
  X(CountUnequal)
