// Rows of the losses with class proxies; scores are e . w/|w|.
//   SoftmaxRow      one item against all classes: cross-entropy of scale * s (normalised softmax,
//                   Oi et al. 2021, eq. 3):
//                   loss = log sum_c exp(scale s_c) - scale s_label
//   ProxyAnchorRow  one class against all items (Kim et al. 2020, eq. 4):
//                   loss = positive_weight log(1 + sum over its items of exp(-alpha (s - margin)))
//                        + negative_weight log(1 + sum over the others of exp(alpha (s + margin)))
// Both write the loss and overwrite the scores with the weight times dloss/ds. Largest exponents
// are subtracted. A row of this kind has
//   Params                                the loss's parameters
//   kRowIsClass                           whether a row is a class and its columns items, or a row
//                                         an item and its columns classes
//   scratch(columns)                      bytes
//   row(team, params, batch, row, memory) overwrites scores with their gradient, writes the loss
#pragma once

#include "kernels/math.h"
#include "kernels/team.h"

#include <cmath>
#include <limits>

namespace rk {

// What all rows of a batch share.
template <class S> struct ProxyBatch {
  S* scores = nullptr;      // [rows, stride], overwritten by dLoss/ds
  std::int64_t stride = 0;  // pad(columns) or more
  int rows = 0;
  int columns = 0;
  const std::int64_t* labels = nullptr;  // [items], rows of the proxies
  // [classes]: 1 / (number of classes in the batch) for each of these, 0 for the others.
  const S* shares = nullptr;
  S weight = 1;         // dLoss/d(loss of a row)
  S* losses = nullptr;  // [rows]
};

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
