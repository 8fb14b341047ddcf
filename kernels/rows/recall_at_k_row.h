// Recall@k of one query, k in {1, 2, 4, 8, 16} (Patel et al. 2022).  sg(x) = 1/(1 + exp(-x/tau))
//   R_j = 1 + sum over gallery items x != j of sg(s_x - s_j),  j in P
//   Q_k = sum over j of 1/(1 + exp(-(k - R_j)/tau_k))
//   loss = 1 - 1/5 sum over k of min(k, Q_k) / min(k, |P|); the first min has slope 0 from k on
//        = 1/5 sum over k of (shortfall of Q_k) / min(k, |P|)
// For k >= |P| the shortfall is a sum of 1 - sg, in which nothing cancels; for k < |P| it is
// k - Q_k, which is exact to the rounding of Q_k.
// With `with_self` the query itself takes a place in every R_j. k is capped at `largest_k`.
// Writes the loss and, to grad[0..pad(columns)), weight * dloss/ds; `grad` may be the memory of
// in.scores. P must not be empty. Cost: 2 (|P| - 1) * columns sigmoids, at least columns: Q_k needs
// all R_j before any slope can be weighted, and only the slopes of the first and the last j are
// kept.
#pragma once

#include "kernels/math.h"
#include "kernels/rows/gallery_row.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace rk {

template <class S> struct RecallAtKRow {
  struct Params {
    S tau = S(0.01);
    S tau_k = 1;
    bool with_self = false;
    int largest_k = std::numeric_limits<int>::max();
  };

  struct Pieces {
    RK_BOTH Pieces(Scratch scratch, int columns, int members)
        : score(scratch.take<S>(columns)),
          last(scratch.take<S>(columns)),
          positive(scratch.take<S>(members)),
          rank(scratch.take<S>(members)),
          to_rank(scratch.take<S>(members)),
          slope(scratch.take<S>(members)),
          index(scratch.take<int>(members)),
          bytes(scratch.bytes()) {}
    S* score;  // of the gallery, -infinity elsewhere
    S* last;   // slopes of the last j's sigmoids
    S* positive;
    S* rank;     // R_j
    S* to_rank;  // weight * dloss/dR_j
    S* slope;    // -tau_k dQ_k/dR_j of the current k
    int* index;
    std::int64_t bytes;
  };

  static std::int64_t work(std::int64_t columns, std::int64_t positives) {
    return std::max<std::int64_t>(1, 2 * positives - 2) * columns;
  }

  template <class Team>
  RK_FN static void row(const Team& team, const Params params, const GalleryRow<S> in, S* grad,
                        S* loss, void* memory) {
    constexpr S kNever = -std::numeric_limits<S>::infinity();
    const Pieces at(Scratch(memory), in.columns, in.member_count);
    const S per_tau = S(1) / params.tau;
    const int p = gather_positives(team, in, at.index);
    const int columns = pad(in.columns);

    team.for_each(columns, [&](int k) {
      const bool counts = in.is_negative(k) || (params.with_self && k == in.self);
      at.score[k] = counts ? in.scores[k] : kNever;
    });
    team.for_each(p, [&](int j) { at.positive[j] = in.scores[at.index[j]]; });
    team.sync();
    team.for_each(p, [&](int j) { at.score[at.index[j]] = at.positive[j]; });

    for (int j = 0; j < p; ++j) {
      const int own = at.index[j];
      S* const slopes = j == 0 ? grad : at.last;  // the first j's, where they will be weighted
      const S above = team.sum(columns, [&](int k) {
        const S x = (at.score[k] - at.positive[j]) * per_tau;
        const S u = half_sigmoid(x);
        slopes[k] = k == own ? S(0) : u - u * u;
        return k == own ? S(0) : x < 0 ? u : 1 - u;
      });
      team.for_each(1, [&](int) { at.rank[j] = 1 + above; });
    }
    team.sync();
    team.for_each(1, [&](int) { *loss = recalls(params, in.weight, p, at); });
    team.sync();
    for (int j = 0; j < p; ++j) {
      const int own = at.index[j];
      const S factor = at.to_rank[j] * per_tau;
      S slopes = 0;
      if (j == 0) {
        slopes = team.sum(columns, [&](int k) {
          const S slope = grad[k];
          grad[k] = factor * slope;
          return slope;
        });
      } else if (j == p - 1) {
        slopes = team.sum(columns, [&](int k) {
          grad[k] += factor * at.last[k];
          return at.last[k];
        });
      } else {
        slopes = team.sum(columns, [&](int k) {
          const S u = half_sigmoid((at.score[k] - at.positive[j]) * per_tau);
          const S slope = k == own ? S(0) : u - u * u;
          grad[k] += factor * slope;
          return slope;
        });
      }
      team.for_each(1, [&](int) { grad[own] -= factor * slopes; });
    }
  }

 private:
  RK_FN static S recalls(const Params params, S weight, int p, const Pieces& at) {
    constexpr int kCount = 5;
    for (int j = 0; j < p; ++j) at.to_rank[j] = 0;
    const S per_tau_k = 1 / params.tau_k;
    S lost = 0;
    for (int n = 0; n < kCount; ++n) {
      const int k = (1 << n) < params.largest_k ? 1 << n : params.largest_k;
      const S share = S(1) / (kCount * static_cast<S>(k < p ? k : p));
      const S limit = static_cast<S>(k);
      S found = 0;
      S missed = 0;
      for (int j = 0; j < p; ++j) {
        const S x = (limit - at.rank[j]) * per_tau_k;
        const S u = half_sigmoid(x);
        found += x < 0 ? u : 1 - u;
        missed += x < 0 ? 1 - u : u;
        at.slope[j] = u - u * u;
      }
      const bool all = k >= p;  // Q_k can reach |P|, not k
      if (!all && found >= limit) continue;
      lost += share * (all ? missed : limit - found);
      const S factor = weight * share * per_tau_k;
      for (int j = 0; j < p; ++j) at.to_rank[j] += factor * at.slope[j];
    }
    return lost;
  }
};

}  // namespace rk
