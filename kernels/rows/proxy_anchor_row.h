// A row of the proxy anchor loss (Kim et al. 2020, eq. 4), one class against all items:
//   loss = positive_weight log(1 + sum over its items of exp(-alpha (s - margin)))
//        + negative_weight log(1 + sum over the others of exp(alpha (s + margin)))
#pragma once

#include "kernels/math.h"
#include "kernels/rows/proxy_batch.h"
#include "kernels/team.h"

#include <cmath>
#include <cstdint>
#include <limits>

namespace rk {

template <class S> struct ProxyAnchorRow {
  struct Params {
    S margin = S(0.1);
    S alpha = 32;
  };
  static constexpr bool kRowIsClass = true;

  RK_BOTH static std::int64_t scratch(int count) {
    Scratch scratch(nullptr);
    scratch.take<S>(count);
    return scratch.bytes();
  }

  template <class Team>
  RK_FN static void row(const Team& team, const Params& params, const ProxyBatch<S>& batch, int row,
                        void* memory) {
    S* scores = batch.scores + row * batch.stride;
    const int count = batch.columns;
    const std::int64_t* labels = batch.labels;
    const std::int64_t own = row;
    const S positive_weight = batch.shares[row], negative_weight = batch.weight;
    constexpr S kNever = -std::numeric_limits<S>::infinity();
    S* value = Scratch(memory).take<S>(count);
    // Exponents of positives fall with the score, those of negatives rise.
    const S highest_positive =
        team.arg_max(count,
                     [&](int i) {
                       return labels[i] == own ? -params.alpha * (scores[i] - params.margin)
                                               : kNever;
                     })
            .value;
    const S highest_negative =
        team.arg_max(count,
                     [&](int i) {
                       return labels[i] == own ? kNever
                                               : params.alpha * (scores[i] + params.margin);
                     })
            .value;
    const S shift = highest_positive > 0 ? highest_positive : S(0);
    const S negative_shift = highest_negative > 0 ? highest_negative : S(0);
    team.for_each(count, [&](int i) {
      value[i] = labels[i] == own
                     ? exp_negative(-params.alpha * (scores[i] - params.margin) - shift)
                     : exp_negative(params.alpha * (scores[i] + params.margin) - negative_shift);
    });
    const S positives = team.sum(count, [&](int i) { return labels[i] == own ? value[i] : S(0); });
    const S negatives = team.sum(count, [&](int i) { return labels[i] == own ? S(0) : value[i]; });
    const S to_positive = -positive_weight * params.alpha / (std::exp(-shift) + positives);
    const S to_negative = negative_weight * params.alpha / (std::exp(-negative_shift) + negatives);
    team.for_each(count, [&](int i) {
      scores[i] = value[i] * (labels[i] == own ? to_positive : to_negative);
    });
    team.for_each(1, [&](int) {
      batch.losses[row] = positive_weight * log1p_scaled(shift, positives) +
                          negative_weight * log1p_scaled(negative_shift, negatives);
    });
  }
};

}  // namespace rk
