// A query's part in the area under the ROC curve (Gajic et al. 2022, eq. 5-9).  sg_r(x, t) = 1/(1 +
// exp(-r(x - t))); thresholds t_m = -1 + m ds, m < count;  T(t) and F(t) are means of sg_r over
// positives' and negatives' scores: the query's hardest pair, or all its pairs. They couple all
// rows, so a first pass writes each row's sums,
//   stats[m] = sum of sg_r(positive, t_m),  stats[count + m] = sum of sg_r(negative, t_m),
// and the second, given slope[m] = dLoss/d(total of stats[m]), writes dLoss/ds to
// grad[0..pad(columns)), which may be the memory of in.scores. Cost: 2 count sigmoids a pair.
#pragma once

#include "kernels/hardest_pair.h"
#include "kernels/math.h"

#include <limits>

namespace rk {

template <class S> struct AucParams {
  S r = S(42.2);
  S step = S(0.05);
  int count = 41;
  const S* slope = nullptr;  // [2 count], for the second pass

  RK_FN RK_INLINE S offset(S score, int m) const {
    return r * (score - (static_cast<S>(m) * step - 1));
  }
  RK_FN RK_INLINE S value(S score, int m) const {
    const S x = offset(score, m);
    const S u = half_sigmoid(x);
    return x < 0 ? u : 1 - u;
  }
  RK_FN RK_INLINE S value_slope(S score, int m) const {
    const S u = half_sigmoid(offset(score, m));
    return r * (u - u * u);
  }
};

template <class S> struct AucHardRow {
  using Params = AucParams<S>;

  RK_BOTH static std::int64_t scratch(int, int members) {
    Scratch scratch(nullptr);
    scratch.take<int>(members);
    return scratch.bytes();
  }

  template <class Team>
  RK_FN static void measure(const Team& team, const Params& params, const GalleryRow<S>& in,
                            S* stats, void* memory) {
    const HardestPair<S> pair = hardest_pair(team, in, Scratch(memory).take<int>(in.member_count));
    team.for_each(params.count, [&](int m) {
      stats[m] = params.value(pair.positive, m);
      stats[params.count + m] = params.value(pair.negative, m);
    });
  }

  template <class Team>
  RK_FN static void row(const Team& team, const Params& params, const GalleryRow<S>& in, S* grad,
                        S* loss, void* memory) {
    const HardestPair<S> pair = hardest_pair(team, in, Scratch(memory).take<int>(in.member_count));
    const S to_positive = team.sum(params.count, [&](int m) {
      return params.slope[m] * params.value_slope(pair.positive, m);
    });
    const S to_negative = team.sum(params.count, [&](int m) {
      return params.slope[params.count + m] * params.value_slope(pair.negative, m);
    });
    write_pair_gradient(team, in, pair, to_positive, to_negative, grad);
    team.for_each(1, [&](int) { *loss = 0; });  // it is in the stats
  }
};

template <class S> struct AucAllRow {
  using Params = AucParams<S>;

  struct Pieces {
    RK_BOTH Pieces(Scratch scratch, int columns, int members)
        : negative(scratch.take<S>(columns)),
          positive(scratch.take<S>(members)),
          positive_grad(scratch.take<S>(members)),
          index(scratch.take<int>(members)),
          bytes(scratch.bytes()) {}
    S* negative;  // score of negatives, -infinity elsewhere: its sigmoids and slopes are exactly 0
    S* positive;
    S* positive_grad;
    int* index;
    std::int64_t bytes;
  };

  RK_BOTH static std::int64_t scratch(int columns, int members) {
    return Pieces(Scratch(nullptr), columns, members).bytes;
  }

  template <class Team>
  RK_FN static void measure(const Team& team, const Params& params, const GalleryRow<S>& in,
                            S* stats, void* memory) {
    const Pieces at(Scratch(memory), in.columns, in.member_count);
    const int p = place(team, in, at);
    team.sums(params.count, pad(p), stats,
              [&](int m, int j) { return params.value(at.positive[j], m); });
    team.sums(params.count, pad(in.columns), stats + params.count,
              [&](int m, int k) { return params.value(at.negative[k], m); });
  }

  template <class Team>
  RK_FN static void row(const Team& team, const Params& params, const GalleryRow<S>& in, S* grad,
                        S* loss, void* memory) {
    const Pieces at(Scratch(memory), in.columns, in.member_count);
    const int p = place(team, in, at);
    const int columns = pad(in.columns);
    team.for_each(pad(p), [&](int j) { at.positive_grad[j] = 0; });
    team.sync();  // grad may lie where the scores were
    team.for_each(columns, [&](int k) { grad[k] = 0; });
    for (int m = 0; m < params.count; ++m) {
      team.sync();  // the element of the threshold before was another member's
      const S to_positive = params.slope[m];
      const S to_negative = params.slope[params.count + m];
      team.for_each(pad(p), [&](int j) {
        at.positive_grad[j] += to_positive * params.value_slope(at.positive[j], m);
      });
      team.for_each(columns,
                    [&](int k) { grad[k] += to_negative * params.value_slope(at.negative[k], m); });
    }
    team.sync();
    team.for_each(p, [&](int j) { grad[at.index[j]] = at.positive_grad[j]; });
    team.for_each(1, [&](int) { *loss = 0; });  // it is in the stats
  }

 private:
  template <class Team>
  RK_FN static int place(const Team& team, const GalleryRow<S>& in, const Pieces& at) {
    constexpr S kNever = -std::numeric_limits<S>::infinity();
    const int p = gather_positives(team, in, false, at.index);
    team.for_each(pad(in.columns),
                  [&](int k) { at.negative[k] = in.is_negative(k) ? in.scores[k] : kNever; });
    team.for_each(pad(p), [&](int j) { at.positive[j] = j < p ? in.scores[at.index[j]] : kNever; });
    return p;
  }
};

}  // namespace rk
