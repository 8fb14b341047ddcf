// Triplet losses of one query (Hermans et al. 2017).  d = sqrt(2 - 2s), or 2 - 2s where `squared`;
// 0 with slope 0 where 2 - 2s <= 0.  h = margin + d(positive) - d(negative);  l(h) = max(0, h),
// slope 0 at 0; where `soft`: l = log(1 + exp(h)) with no margin.
//   TripletHardRow: l of the hardest pair        TripletAllRow: sum of l over all pairs of P and N
// Both write the loss and, to grad[0..pad(columns)), weight * dloss/ds; `grad` may be the memory of
// in.scores. P and N must not be empty. Cost of TripletAllRow: |P| * columns hinges, twice.
#pragma once

#include "kernels/math.h"
#include "kernels/rows/batch_numbers.h"
#include "kernels/rows/hardest_pair.h"

#include <cmath>
#include <cstdint>
#include <limits>

namespace rk {

template <class S> struct TripletParams {
  S margin = S(0.3);
  bool squared = false;
  bool soft = false;

  RK_FN RK_INLINE S distance(S score) const {
    const S square = 2 - 2 * score;
    const S inside = square > 0 ? square : S(0);
    const S root = std::sqrt(inside);  // unconditional: a call under a condition does not vectorise
    return squared ? inside : root;
  }
  // dd/ds, given d.
  RK_FN RK_INLINE S distance_slope(S d) const {
    const S slope = squared ? S(-2) : -1 / d;
    return d > 0 ? slope : S(0);
  }
  RK_FN RK_INLINE S gap() const { return soft ? S(0) : margin; }
  // kSoft is `soft` as a constant, so that hinges compute no exponentials.
  template <bool kSoft> RK_FN RK_INLINE S value(S h) const {
    const S above = h > 0 ? h : S(0);
    if constexpr (kSoft) return above + log1p_of_fraction(exp_negative(-std::abs(h)));
    return above;
  }
  template <bool kSoft> RK_FN RK_INLINE S slope(S h) const {
    if constexpr (kSoft) {
      const S u = half_sigmoid(h);
      return h < 0 ? u : 1 - u;
    }
    return h > 0 ? S(1) : S(0);
  }
};

template <class S> struct TripletHardRow {
  using Params = TripletParams<S>;

  using Pieces = HardestPairPieces;

  template <class Team>
  RK_FN static void row(const Team& team, const Params params, const GalleryRow<S> in, S* grad,
                        S* loss, void* memory) {
    hardest_pair_row<TripletHardRow>(team, params, in, grad, loss, memory);
  }

  template <class Team>
  RK_FN static PairGradient<S> pair_gradient(const Team& team, const Params params,
                                             const HardestPair<S> pair, const GalleryRow<S>& in,
                                             S* loss) {
    const S to_positive = params.distance(pair.positive);
    const S to_negative = params.distance(pair.negative);
    const S h = params.gap() + to_positive - to_negative;
    const S factor = in.weight * (params.soft ? params.template slope<true>(h)
                                              : params.template slope<false>(h));
    team.for_each(1, [&](int) {
      *loss = params.soft ? params.template value<true>(h) : params.template value<false>(h);
    });
    return {factor * params.distance_slope(to_positive),
            -factor * params.distance_slope(to_negative)};
  }
};

template <class S> struct TripletAllRow {
  struct Params : TripletParams<S> {
    S per_active = 1;  // 1 / (triplets with a loss above 0), over all rows
  };

  struct Pieces {
    RK_BOTH Pieces(Scratch scratch, int columns, int members)
        : negative(scratch.take<S>(columns)),
          positive(scratch.take<S>(members)),
          positive_grad(scratch.take<S>(members)),
          index(scratch.take<int>(members)),
          bytes(scratch.bytes()) {}
    S* negative;  // d of negatives, infinity elsewhere: such a triplet has no loss
    S* positive;  // d of positives
    S* positive_grad;
    int* index;
    std::int64_t bytes;
  };

  static std::int64_t work(std::int64_t columns, std::int64_t positives) {
    return positives * columns;
  }

  // stats[0]: the triplets of this row whose loss is above 0. They are counted in double: above
  // 2^24 a float would round at every positive, always the same way if all have equally many.
  template <class Team>
  RK_FN static void measure(const Team& team, const Params params, const GalleryRow<S> in, S* stats,
                            void* memory) {
    const Pieces at(Scratch(memory), in.columns, in.member_count);
    const int p = place(team, params, in, at);
    const S least = params.soft ? -std::numeric_limits<S>::infinity() : S(0);
    double active = 0;
    for (int j = 0; j < p; ++j) {
      const S of_positive = team.sum(pad(in.columns), [&](int k) {
        return params.gap() + at.positive[j] - at.negative[k] > least ? S(1) : S(0);
      });
      active += static_cast<double>(of_positive);
    }
    team.for_each(1, [&](int) { stats[0] = static_cast<S>(active); });
  }

  RK_BOTH static int stats(const Params&) { return 1; }
  RK_BOTH static int slopes(const Params&, int) { return 0; }
  // The rows' losses are already shares of the mean.
  template <class Team>
  RK_FN static void finish(const Team& team, const BatchNumbers&, const double* totals,
                           Params* params, S*, double* loss) {
    team.for_each(1, [&](int) {
      params->per_active = totals[0] > 0 ? static_cast<S>(1 / totals[0]) : S(0);
      *loss = 0;
    });
  }

  template <class Team>
  RK_FN static void row(const Team& team, const Params params, const GalleryRow<S> in, S* grad,
                        S* loss, void* memory) {
    if (params.soft) {
      row_of<true>(team, params, in, grad, loss, memory);
    } else {
      row_of<false>(team, params, in, grad, loss, memory);
    }
  }

 private:
  template <bool kSoft, class Team>
  RK_FN static void row_of(const Team& team, const Params params, const GalleryRow<S> in, S* grad,
                           S* loss, void* memory) {
    const Pieces at(Scratch(memory), in.columns, in.member_count);
    const int p = place(team, params, in, at);
    const int columns = pad(in.columns);
    team.sync();  // grad may be the memory of in.scores
    team.for_each(columns, [&](int k) { grad[k] = 0; });
    double total = 0;
    for (int j = 0; j < p; ++j) {
      const S of_positive = team.sum(columns, [&](int k) {
        return params.template value<kSoft>(params.gap() + at.positive[j] - at.negative[k]);
      });
      total += static_cast<double>(of_positive);
      const S slopes = team.sum(columns, [&](int k) {
        const S slope =
            params.template slope<kSoft>(params.gap() + at.positive[j] - at.negative[k]);
        grad[k] -= slope;
        return slope;
      });
      team.for_each(1, [&](int) { at.positive_grad[j] = slopes; });
    }
    const S scale = in.weight * params.per_active;
    team.for_each(columns, [&](int k) {
      const S d = at.negative[k];
      grad[k] = in.is_negative(k) ? grad[k] * scale * params.distance_slope(d) : S(0);
    });
    team.sync();
    team.for_each(p, [&](int j) {
      grad[at.index[j]] = at.positive_grad[j] * scale * params.distance_slope(at.positive[j]);
    });
    team.for_each(
        1, [&](int) { *loss = static_cast<S>(total * static_cast<double>(params.per_active)); });
  }

  template <class Team>
  RK_FN static int place(const Team& team, const Params params, const GalleryRow<S> in,
                         const Pieces& at) {
    const int p = gather_positives(team, in, at.index);
    team.for_each(pad(in.columns), [&](int k) {
      at.negative[k] =
          in.is_negative(k) ? params.distance(in.scores[k]) : std::numeric_limits<S>::infinity();
    });
    team.for_each(p, [&](int j) { at.positive[j] = params.distance(in.scores[at.index[j]]); });
    return p;
  }
};

}  // namespace rk
