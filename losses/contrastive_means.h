// From the totals of ContrastiveRow::measure to the loss and the factors of its gradient.
#pragma once

#include "kernels/contrastive_row.h"

namespace rk {

template <class Params>  // ContrastiveRow<S>::Params
double contrastive_means(const double* totals, Params& params) {
  using S = decltype(params.pos);
  params.per_positive = totals[0] > 0 ? static_cast<S>(1 / totals[0]) : S(0);
  params.per_negative = totals[2] > 0 ? static_cast<S>(1 / totals[2]) : S(0);
  return (totals[0] > 0 ? totals[1] / totals[0] : 0) + (totals[2] > 0 ? totals[3] / totals[2] : 0);
}

}  // namespace rk
