// Histogram loss, Ustinova and Lempitsky 2016 (counts: kernels/rows/histogram_row.h): the
// probability that a negative pair is more similar than a positive one, sum over r of h-_r H+_r,
// with h+ over all ordered positive pairs, h- over all negative ones, H+ the running sum of h+; 0
// if no query has both kinds.
#pragma once

#include "losses/frame/entry.h"

namespace rk {

LossEntry histogram_entry();

}  // namespace rk
