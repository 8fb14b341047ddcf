// A query's part in the area under the ROC curve (Gajic et al. 2022, eq. 5-9).  sg_r(x, t) = 1/(1 +
// exp(-r(x - t))); thresholds t_m = -1 + m ds, m < count;  T(t) and F(t) are means of sg_r over the
// scores of positives and of negatives: of every query's hardest pair, or of all its pairs. T and F
// couple all rows, so a first pass writes each row's sums,
//   hardest pairs  stats[b] = the positive's share of bin b <= count (AucParams),
//                  stats[count + 1 + b] = the negative's;
//   all pairs      stats[m] = sum of 1 - sg_r(positive, t_m),
//                  stats[count + m] = sum of sg_r(negative, t_m),
// and the second writes dLoss/ds to grad[0..pad(columns)), which may be the memory of in.scores.
// The second pass needs from the first:
//   hardest pairs  slope[m] and slope[count + m] = dLoss/d(sum of sg_r at t_m) of positives and of
//                  negatives;
//   all pairs      AucGradient: dLoss/ds of a pair depends on its score alone, so it is tabulated.
// Cost of all pairs: at most count sigmoids a pair (none at thresholds where the sigmoid is 0 or 1
// for all scores of the row), two sharing a reciprocal and twelve an exponential; then one
// polynomial a pair.
#pragma once

#include "kernels/math.h"
#include "kernels/rows/batch_numbers.h"
#include "kernels/rows/hardest_pair.h"

#include <cmath>
#include <cstdint>
#include <limits>

namespace rk {

template <class S> struct AucParams {
  S r = S(42.2);
  S step = S(0.05);
  int count = 41;
  const S* slope = nullptr;  // [2 count], for the second pass over hardest pairs

  RK_FN RK_INLINE S threshold(int m) const { return static_cast<S>(m) * step - 1; }
  RK_FN RK_INLINE S value(S score, int m) const {
    const S x = r * (score - threshold(m));
    const S u = half_sigmoid(x);
    return x < 0 ? u : 1 - u;
  }
  // 1 - value, without cancellation.
  RK_FN RK_INLINE S missed(S score, int m) const {
    const S x = r * (score - threshold(m));
    const S u = half_sigmoid(x);
    return x < 0 ? 1 - u : u;
  }
  RK_FN RK_INLINE S value_slope(S score, int m) const {
    const S u = half_sigmoid(r * (score - threshold(m)));
    return r * (u - u * u);
  }

  // The thresholds make count + 1 bins, and a score has a share in each: missed(0) in bin 0, below
  // all thresholds; value(m) - value(m + 1) in bin m + 1, between two of them; value(count - 1) in
  // the last. With g = exp(-r ds / 2), e = exp(-|r x|) and x the distance from the bin's middle,
  // the difference is (1 - g^2) e / ((g + e)(1 + g e)), in which nothing cancels.
  RK_FN RK_INLINE S half_step() const { return exp_negative(-r * step / 2); }  // g
  RK_FN RK_INLINE S between(S score, int m, S g) const {
    const S middle = (static_cast<S>(m) + S(0.5)) * step - 1;
    const S e = exp_negative(-std::abs(r * (score - middle)));
    return (1 - g * g) * e * reciprocal((g + e) * (1 + g * e));
  }
};

// From the totals over all scores: the loss, 1 - the area under the curve, and slopes [2 count],
// its derivatives by the sums of sg_r. positive(b) and negative(b) are the totals of the shares of
// bin b <= count; T and F are the shares above a threshold. A negative costs the positives in the
// bins below its own and half of those in its own; below the first threshold or above the last it
// costs all of them. So loss and slopes are sums of shares of one sign, and keep their digits
// however close the loss is to 0 or 1. Totals are divided by the sum over all bins, which is the
// number of scores up to the rounding of their shares.
template <class S, class Team, class Positive, class Negative>
RK_FN void finish_auc(const Team& team, int count, const Positive& positive,
                      const Negative& negative, S* slopes, double* loss) {
  const double positives = team.sum(count + 1, positive);
  const double negatives = team.sum(count + 1, negative);
  const double above_second = team.sum(count - 1, [&](int m) { return positive(m + 2); });
  const auto inner = [=](int b) { return b > 0 && b < count; };
  team.for_each(count, [&](int m) {
    const double by_t = (inner(m) ? negative(m) : 0) + (inner(m + 1) ? negative(m + 1) : 0);
    // The curve's mean height in the bin below less that in the bin above; outer bins have none.
    double by_f = (positive(m) + positive(m + 1)) / 2;
    if (m == 0) by_f = -(positive(1) / 2 + above_second);
    if (m + 1 == count) by_f = positive(m) / 2 + positive(m + 1);
    slopes[m] = static_cast<S>(-by_t / 2 / negatives / positives);
    slopes[count + m] = static_cast<S>(by_f / positives / negatives);
  });
  team.for_each(1, [&](int) {
    double below = 0;
    double above_curve = 0;
    for (int b = 1; b < count; ++b) {
      below += positive(b - 1);
      above_curve += negative(b) * (below + positive(b) / 2);
    }
    *loss = (negative(0) + above_curve / positives + negative(count)) / negatives;
  });
}

template <class S> struct AucHardRow {
  using Params = AucParams<S>;

  RK_BOTH static int stats(const Params& params) { return 2 * (params.count + 1); }
  RK_BOTH static int slopes(const Params& params, int) { return 2 * params.count; }
  static void place(Params& params, const S* slopes) { params.slope = slopes; }
  template <class Team>
  RK_FN static void finish(const Team& team, const BatchNumbers&, const double* totals,
                           Params* params, S* slopes, double* loss) {
    const double* const of_negatives = totals + params->count + 1;
    const auto positive = [=](int b) { return totals[b]; };
    const auto negative = [=](int b) { return of_negatives[b]; };
    finish_auc(team, params->count, positive, negative, slopes, loss);
  }

  using Pieces = HardestPairPieces;

  template <class Team>
  RK_FN static void measure(const Team& team, const Params params, const GalleryRow<S> in, S* stats,
                            void* memory) {
    measure_hardest_pair<AucHardRow>(team, params, in, stats, memory);
  }
  template <class Team>
  RK_FN static void measure_pair(const Team& team, const Params params, const HardestPair<S> pair,
                                 S* stats) {
    const int count = params.count;
    S* const negative = stats + count + 1;
    team.for_each(1, [=](int) {
      stats[0] = params.missed(pair.positive, 0);
      stats[count] = params.value(pair.positive, count - 1);
      negative[0] = params.missed(pair.negative, 0);
      negative[count] = params.value(pair.negative, count - 1);
    });
    const S g = params.half_step();
    S* const inner_positive = stats + 1;  // a sum in the index would compile to a scatter
    S* const inner_negative = negative + 1;
    team.for_each(count - 1, [=](int m) {
      inner_positive[m] = params.between(pair.positive, m, g);
      inner_negative[m] = params.between(pair.negative, m, g);
    });
  }

  template <class Team>
  RK_FN static void row(const Team& team, const Params params, const GalleryRow<S> in, S* grad,
                        S* loss, void* memory) {
    hardest_pair_row<AucHardRow>(team, params, in, grad, loss, memory);
  }
  template <class Team>
  RK_FN static PairGradient<S> pair_gradient(const Team& team, const Params params,
                                             const HardestPair<S> pair, const GalleryRow<S>&,
                                             S* loss) {
    const S to_positive = team.sum(params.count, [&](int m) {
      return params.slope[m] * params.value_slope(pair.positive, m);
    });
    const S to_negative = team.sum(params.count, [&](int m) {
      return params.slope[params.count + m] * params.value_slope(pair.negative, m);
    });
    team.for_each(1, [&](int) { *loss = 0; });  // finish() has computed it from the stats
    return {to_positive, to_negative};
  }
};

// dLoss/ds of a positive and of a negative pair as a function of its score: a polynomial for each
// interval [(n - 1/2) width, (n + 1/2) width] of score - origin, in the distance to its middle.
// kernels/rows/auc_table.h makes the coefficients.
template <class S> struct AucGradient {
  // Relative errors of 1e-6 and 1e-12, smaller than those of sums of sigmoids in S.
  static constexpr int kDegree = sizeof(S) == 4 ? 3 : 7;
  static constexpr int kCoefficients = kDegree + 1;

  const S* positive = nullptr;  // [intervals, kCoefficients], 0 in the first and last interval
  const S* negative = nullptr;
  S origin = 0;
  S width = 1;       // rounded to so few bits that n * width is exact
  S width_rest = 0;  // exact width - width
  S per_width = 1;
  int before = 0;  // intervals to the left of the origin's
  int after = 0;   // and to its right

  RK_FN RK_INLINE S operator()(const S* coefficients, S score) const {
    const S least = static_cast<S>(-before) * width;
    const S most = static_cast<S>(after) * width;
    S x = score - origin;
    x = x > least ? x : least;  // also for NaN, which the padding may hold
    x = x < most ? x : most;
    const S n = std::floor(x * per_width + S(0.5));
    x = std::fma(n, -width, x);
    x = std::fma(n, -width_rest, x);
    const int at = (static_cast<int>(n) + before) * kCoefficients;
    S value = coefficients[at + kDegree];
    for (int d = kDegree - 1; d >= 0; --d) value = std::fma(value, x, coefficients[at + d]);
    return value;
  }
};

template <class S> struct AucAllParams : AucParams<S> {
  AucGradient<S> gradient;  // for the second pass

  // sigmoid(kOne) is 1 in S. sigmoid(-kZero), 6e-9 in float (a tenth of the rounding of 1), counts
  // as 0 or stands for any smaller value.
  static constexpr S kOne = sizeof(S) == 4 ? S(17.5) : S(38);
  static constexpr S kZero = sizeof(S) == 4 ? S(19) : S(40);

  // Thresholds come in groups that share an exponential, decay = exp(-r (score - t_first)): the
  // sigmoid at t_(first + m) is 1 / (1 + decay * growth^m), growth = exp(r ds).
  static constexpr int kGroup = 12;
  // Two sigmoids share a reciprocal, whose argument must stay below 1e37 = exp(85.1). r ds is below
  // 4 (losses/auc/auc.h), about 2 at the paper's settings. A group is a multiple of 4, because
  // SerialTeam::sums computes four sums at a time.
  RK_FN RK_INLINE int group() const {
    constexpr S kLargest = sizeof(S) == 4 ? S(42.5) : S(300);
    const S most = (kLargest - kZero) / (this->r * this->step) + 1;
    return most < kGroup ? static_cast<int>(most) / 4 * 4 : kGroup;
  }
  RK_FN RK_INLINE S decay(S score, int first) const {
    const S x = this->r * (this->threshold(first) - score);
    return exp_negative(x < kZero ? x : kZero);
  }
  // decay() of a score of -infinity.
  RK_FN RK_INLINE static S filler() { return exp_negative(kZero); }
  RK_FN RK_INLINE S growth(int m) const {
    return exp_negative(this->r * this->step * static_cast<S>(m));
  }
  // first_not_far_below: all thresholds before this one are at least far / r below all scores. far:
  // kOne where sigmoids are summed, kZero where 1 - sigmoid is. first_zero: this threshold and all
  // after it are so far above all scores that sigmoids count as 0.
  RK_FN RK_INLINE int first_not_far_below(S least_score, S far) const {
    return threshold_at(std::floor((least_score + 1 - far / this->r) / this->step));
  }
  RK_FN RK_INLINE int first_zero(S largest_score) const {
    return threshold_at(std::ceil((largest_score + 1 + kZero / this->r) / this->step));
  }

 private:
  RK_FN RK_INLINE int threshold_at(S m) const {
    const auto last = static_cast<S>(this->count);
    return static_cast<int>(m < 0 ? S(0) : m > last ? last : m);
  }
};

template <class S> struct AucAllRow {
  using Params = AucAllParams<S>;

  RK_BOTH static int stats(const Params& params) { return 2 * params.count; }
  RK_BOTH static int slopes(const Params& params, int) { return 2 * params.count; }
  // Shares are differences of the sums, so parts below the sums' rounding or below sigmoid(-kZero)
  // are lost. kernels/rows/auc_table.h makes params.gradient from the slopes.
  template <class Team>
  RK_FN static void finish(const Team& team, const BatchNumbers& batch, const double* totals,
                           Params* params, S* slopes, double* loss) {
    const int count = params->count;
    const double positives = batch.positive_pairs;
    const double negatives = batch.negative_pairs;
    const double* const of_negatives = totals + count;
    const auto positive = [=](int b) {
      return (b < count ? totals[b] : positives) - (b > 0 ? totals[b - 1] : 0);
    };
    const auto negative = [=](int b) {
      const double above = b < count ? of_negatives[b] : 0;
      const double share = (b > 0 ? of_negatives[b - 1] : negatives) - above;
      return share > 0 ? share : 0.0;  // negative only by rounding
    };
    finish_auc(team, count, positive, negative, slopes, loss);
  }

  // Room for n elements in two halves of whole vectors: element k shares a reciprocal with element
  // k + padded(n) / 2.
  RK_BOTH static constexpr int padded(int n) { return 2 * pad((n + 1) / 2); }

  struct Pieces {
    RK_BOTH Pieces(Scratch scratch, int columns, int members)
        : negative(scratch.take<S>(padded(columns))),
          decay(scratch.take<S>(padded(columns))),
          positive(scratch.take<S>(padded(members))),
          growth(scratch.take<S>(Params::kGroup)),
          index(scratch.take<int>(members)),
          bytes(scratch.bytes()) {}
    S* negative;  // score of negatives, -infinity elsewhere
    S* decay;     // decay() of every score for the current group of thresholds
    S* positive;  // score of positives, infinity in the padding; in row() their gradient
    S* growth;
    int* index;
    std::int64_t bytes;
  };

  template <class Team>
  RK_FN static void measure(const Team& team, const Params params, const GalleryRow<S> in, S* stats,
                            void* memory) {
    const Pieces at(Scratch(memory), in.columns, in.member_count);
    const int p = gather_positives(team, in, at.index);
    team.for_each(padded(p),
                  [&](int j) { at.positive[j] = j < p ? in.scores[at.index[j]] : -kNever; });
    const int columns = pad(in.columns);
    team.for_each(columns,
                  [&](int k) { at.negative[k] = in.is_negative(k) ? in.scores[k] : kNever; });
    team.for_each(padded(in.columns) - columns, [&](int k) { at.negative[columns + k] = kNever; });
    team.for_each(Params::kGroup, [&](int m) { at.growth[m] = params.growth(m); });
    sum_sigmoids<true>(team, params, at, at.positive, padded(p), p, stats);
    sum_sigmoids<false>(team, params, at, at.negative, padded(in.columns), in.negatives(),
                        stats + params.count);
  }

  template <class Team>
  RK_FN static void row(const Team& team, const Params params, const GalleryRow<S> in, S* grad,
                        S* loss, void* memory) {
    const Pieces at(Scratch(memory), in.columns, in.member_count);
    const AucGradient<S> gradient = params.gradient;
    const int p = gather_positives(team, in, at.index);
    team.for_each(
        p, [&](int j) { at.positive[j] = gradient(gradient.positive, in.scores[at.index[j]]); });
    team.sync();  // grad may be the memory of in.scores
    team.for_each(pad(in.columns), [&](int k) {
      const S to_negative = gradient(gradient.negative, in.scores[k]);
      grad[k] = in.is_negative(k) ? to_negative : S(0);
    });
    team.sync();
    team.for_each(p, [&](int j) { grad[at.index[j]] = at.positive[j]; });
    team.for_each(1, [&](int) {
      *loss = 0;  // finish() has computed it from the stats
    });
  }

 private:
  static constexpr S kNever = -std::numeric_limits<S>::infinity();

  // sums[m] = the sum over `count` scores of sg_r(scores[k], t_m), or of 1 - sg_r where kMissed.
  // `n` includes padding: where kMissed it is +infinity, which adds nothing; else -infinity, which
  // adds sigmoid(-kZero) at the first threshold of a group and less at the later ones, and is
  // subtracted afterwards.
  template <bool kMissed, class Team>
  RK_FN RK_INLINE static void sum_sigmoids(const Team& team, const Params params, const Pieces& at,
                                           const S* scores, int n, int count, S* sums) {
    constexpr S kFiller = kMissed ? -kNever : kNever;
    const auto most = [&](S sign) {
      return team
          .arg_max(n,
                   [=](int k) {
                     const S score = scores[k];
                     return score == kFiller ? kNever : sign * score;
                   })
          .value;
    };
    const S largest = most(1);
    const S least = -most(-1);
    const int end = params.first_zero(largest);
    const int ones = params.first_not_far_below(least, kMissed ? Params::kZero : Params::kOne);
    const int begin = ones < end ? ones : end;
    const S all = static_cast<S>(count);
    team.for_each(begin, [&](int m) { sums[m] = kMissed ? S(0) : all; });
    team.for_each(params.count - end, [&](int m) { sums[end + m] = kMissed ? all : S(0); });
    // Plain pointers: a sum in an index, or access through a reference, would compile to a gather.
    const int half = n / 2;
    S* const decay = at.decay;
    const S* const other = at.decay + half;
    const S* const growth = at.growth;
    for (int first = begin; first < end; first += params.group()) {
      const int group = end - first < params.group() ? end - first : params.group();
      team.for_each(n, [=](int k) { decay[k] = params.decay(scores[k], first); });
      team.sums(group, half, sums + first, [=](int m, int k) {
        const S a = std::fma(decay[k], growth[m], S(1));
        const S b = std::fma(other[k], growth[m], S(1));
        // 1 - 1/a = decay growth / a
        const S above = kMissed ? growth[m] * std::fma(decay[k], b, other[k] * a) : a + b;
        return above * reciprocal(a * b);
      });
      if constexpr (!kMissed) {
        const auto fillers = static_cast<S>(n - count);
        team.for_each(group, [=](int m) {
          const S theirs = fillers * reciprocal(std::fma(params.filler(), growth[m], S(1)));
          sums[first + m] = sums[first + m] > theirs ? sums[first + m] - theirs : S(0);
        });
      }
    }
  }
};

}  // namespace rk
