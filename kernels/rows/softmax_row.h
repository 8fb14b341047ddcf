// A row of the normalised softmax (Oi et al. 2021, eq. 3), one item against all classes:
// cross-entropy of scale * s,
//   loss = log sum_c exp(scale s_c) - scale s_label
// The row of batch.scores, [rows, columns] cosine similarities, is overwritten by the gradient for
// them times batch.weight; batch.losses[row] gets the loss.
#pragma once

#include "kernels/math.h"
#include "kernels/rows/proxy_batch.h"
#include "kernels/team.h"

#include <cmath>
#include <cstdint>

namespace rk {

template <class S> struct SoftmaxRow {
  struct Params {
    S scale = 10;
  };
  static constexpr bool kRowIsClass = false;

  RK_BOTH static std::int64_t scratch(int count) {
    Scratch scratch(nullptr);
    scratch.take<S>(count);
    return scratch.bytes();
  }

  template <class Team>
  RK_FN static void row(const Team& team, const Params& params, const ProxyBatch<S>& batch, int row,
                        void* memory) {
    S* scores = batch.scores + row * batch.stride;
    const S scale = params.scale;
    const int count = batch.columns, label = static_cast<int>(batch.labels[row]);
    S* share = Scratch(memory).take<S>(count);
    const S own = scores[label];
    const S largest = team.arg_max(count, [&](int c) { return scores[c]; }).value;
    // The other classes are summed apart: 1 - the label's own share would cancel near 1.
    const S others = team.sum(count, [&](int c) {
      share[c] = exp_negative(scale * (scores[c] - largest));
      return c == label ? S(0) : share[c];
    });
    const S exponent = scale * (largest - own);
    const S total = exp_negative(-exponent) + others;
    const S factor = batch.weight * scale / total;
    team.for_each(count, [&](int c) { scores[c] = factor * (c == label ? -others : share[c]); });
    team.for_each(1, [&](int) {
      batch.losses[row] = exponent > 0 ? std::log(total) + exponent : std::log1p(others);
    });
  }
};

}  // namespace rk
