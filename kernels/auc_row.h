// A query's part in the area under the ROC curve (Gajic et al. 2022, eq. 5-9).  sg_r(x, t) = 1/(1 +
// exp(-r(x - t))); thresholds t_m = -1 + m ds, m < count;  T(t) and F(t) are means of sg_r over
// positives' and negatives' scores: the query's hardest pair, or all its pairs. They couple all
// rows, so a first pass writes each row's sums,
//   stats[m] = sum of sg_r(positive, t_m),  stats[count + m] = sum of sg_r(negative, t_m),
// and the second, given slope[m] = dLoss/d(total of stats[m]), writes dLoss/ds to
// grad[0..pad(columns)), which may be the memory of in.scores. Cost: 2 count sigmoids a pair, of
// which every eighth takes an exponential.
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

  RK_FN RK_INLINE S threshold(int m) const { return static_cast<S>(m) * step - 1; }
  RK_FN RK_INLINE S value(S score, int m) const {
    const S x = r * (score - threshold(m));
    const S u = half_sigmoid(x);
    return x < 0 ? u : 1 - u;
  }
  RK_FN RK_INLINE S value_slope(S score, int m) const {
    const S u = half_sigmoid(r * (score - threshold(m)));
    return r * (u - u * u);
  }
  // Thresholds come in groups that share an exponential, decay = exp(-r (score - t_first)): the
  // sigmoid at t_(first + m) is 1 / (1 + decay * growth^m), growth = exp(r ds). r ds is below 4, so
  // a decay of exp(50) keeps that below 1e37; what lies so far below counts as exp(-50).
  static constexpr int kGroup = 8;
  RK_FN RK_INLINE S decay(S score, int first) const {
    constexpr S kMost = 50;
    const S x = r * (threshold(first) - score);
    return exp_negative(x < kMost ? x : kMost);
  }
  RK_FN RK_INLINE S growth(int m) const { return exp_negative(r * step * static_cast<S>(m)); }
};

template <class S> struct AucHardRow {
  using Params = AucParams<S>;

  RK_BOTH static std::int64_t scratch(int, int members) {
    Scratch scratch(nullptr);
    scratch.take<int>(members);
    return scratch.bytes();
  }

  template <class Team>
  RK_FN static void measure(const Team& team, const Params params, const GalleryRow<S> in, S* stats,
                            void* memory) {
    const HardestPair<S> pair = hardest_pair(team, in, Scratch(memory).take<int>(in.member_count));
    team.for_each(params.count, [&](int m) {
      stats[m] = params.value(pair.positive, m);
      stats[params.count + m] = params.value(pair.negative, m);
    });
  }

  template <class Team>
  RK_FN static void row(const Team& team, const Params params, const GalleryRow<S> in, S* grad,
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
          decay(scratch.take<S>(columns)),
          positive(scratch.take<S>(members)),
          positive_decay(scratch.take<S>(members)),
          positive_grad(scratch.take<S>(members)),
          growth(scratch.take<S>(Params::kGroup)),
          index(scratch.take<int>(members)),
          bytes(scratch.bytes()) {}
    S* negative;  // score of negatives, -infinity elsewhere
    S* decay;     // of the present group of thresholds
    S* positive;
    S* positive_decay;
    S* positive_grad;
    S* growth;
    int* index;
    std::int64_t bytes;
  };

  RK_BOTH static std::int64_t scratch(int columns, int members) {
    return Pieces(Scratch(nullptr), columns, members).bytes;
  }

  template <class Team>
  RK_FN static void measure(const Team& team, const Params params, const GalleryRow<S> in, S* stats,
                            void* memory) {
    const Pieces at(Scratch(memory), in.columns, in.member_count);
    const int p = place(team, params, in, at);
    for (int first = 0; first < params.count; first += Params::kGroup) {
      const int left = params.count - first;
      const int group = left < Params::kGroup ? left : Params::kGroup;
      team.sync();
      begin_group(team, params, in, at, p, first);
      team.sums(group, pad(p), stats + first,
                [&](int m, int j) { return sigmoid(at.positive_decay[j] * at.growth[m]); });
      team.sums(group, pad(in.columns), stats + params.count + first,
                [&](int m, int k) { return sigmoid(at.decay[k] * at.growth[m]); });
    }
  }

  template <class Team>
  RK_FN static void row(const Team& team, const Params params, const GalleryRow<S> in, S* grad,
                        S* loss, void* memory) {
    const Pieces at(Scratch(memory), in.columns, in.member_count);
    const int p = place(team, params, in, at);
    const int columns = pad(in.columns);
    team.for_each(pad(p), [&](int j) { at.positive_grad[j] = 0; });
    team.sync();  // grad may lie where the scores were
    team.for_each(columns, [&](int k) { grad[k] = 0; });
    for (int m = 0; m < params.count; ++m) {
      team.sync();  // the elements of the threshold before were another member's
      const int in_group = m % Params::kGroup;
      if (in_group == 0) {
        begin_group(team, params, in, at, p, m);
        team.sync();
      }
      const S growth = at.growth[in_group];
      const S to_positive = params.r * params.slope[m];
      const S to_negative = params.r * params.slope[params.count + m];
      team.for_each(pad(p), [&](int j) {
        at.positive_grad[j] += to_positive * sigmoid_slope(at.positive_decay[j] * growth);
      });
      team.for_each(columns,
                    [&](int k) { grad[k] += to_negative * sigmoid_slope(at.decay[k] * growth); });
    }
    team.sync();
    team.for_each(p, [&](int j) { grad[at.index[j]] = at.positive_grad[j]; });
    team.for_each(1, [&](int) {
      *loss = 0;  // it is in the stats
    });
  }

 private:
  // Of x, and its derivative, given e = exp(-x).
  RK_FN RK_INLINE static S sigmoid(S e) { return reciprocal(1 + e); }
  RK_FN RK_INLINE static S sigmoid_slope(S e) {
    const S u = reciprocal(1 + e);
    return e * u * u;
  }

  template <class Team>
  RK_FN static void begin_group(const Team& team, const Params params, const GalleryRow<S> in,
                                const Pieces& at, int p, int first) {
    team.for_each(pad(in.columns),
                  [&](int k) { at.decay[k] = params.decay(at.negative[k], first); });
    team.for_each(pad(p),
                  [&](int j) { at.positive_decay[j] = params.decay(at.positive[j], first); });
  }

  template <class Team>
  RK_FN static int place(const Team& team, const Params params, const GalleryRow<S> in,
                         const Pieces& at) {
    constexpr S kNever = -std::numeric_limits<S>::infinity();
    const int p = gather_positives(team, in, false, at.index);
    team.for_each(pad(in.columns),
                  [&](int k) { at.negative[k] = in.is_negative(k) ? in.scores[k] : kNever; });
    team.for_each(pad(p), [&](int j) { at.positive[j] = j < p ? in.scores[at.index[j]] : kNever; });
    team.for_each(Params::kGroup, [&](int m) { at.growth[m] = params.growth(m); });
    return p;
  }
};

}  // namespace rk
