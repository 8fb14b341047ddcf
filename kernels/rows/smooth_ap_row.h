// Smooth-AP of one query (Brown et al. 2020, eq. 7-8).  sg(x) = 1/(1 + exp(-x/tau)); for j in P:
//   R+_j = 1 + sum over k in P, k != j, of sg(s_k - s_j)
//   R_j  = R+_j + sum over N of sg(s_k - s_j)
//   loss = 1 - mean over j of R+_j / R_j = mean over j of (R_j - R+_j) / R_j
// The kernel computes the latter: nothing cancels, however small the loss. Scores are subtracted
// before they are divided by tau, because the difference of two similar scores is exact.
// Writes the loss and, to grad[0..pad(columns)), weight * dloss/ds; 0 outside P and N. `grad` may
// be the memory of in.scores. P must not be empty. Cost: |P| * (|P| + columns) sigmoids. Equal
// scores count half.
#pragma once

#include "kernels/math.h"
#include "kernels/rows/gallery_row.h"

#include <cstdint>
#include <limits>

namespace rk {

template <class S> struct SmoothApRow {
  struct Params {
    S tau = S(0.01);
    bool with_self = false;
  };

  struct Pieces {
    RK_BOTH Pieces(Scratch scratch, int columns, int members)
        : score(scratch.take<S>(columns)),
          half(scratch.take<S>(columns)),
          positive(scratch.take<S>(members)),
          positive_half(scratch.take<S>(members)),
          positive_grad(scratch.take<S>(members)),
          index(scratch.take<int>(members)),
          bytes(scratch.bytes()) {}
    S* score;  // of negatives, -infinity elsewhere: such a column adds exactly 0
    S* half;   // small side of the sigmoids of the current j (math.h)
    S* positive;
    S* positive_half;
    S* positive_grad;
    int* index;
    std::int64_t bytes;
  };

  static std::int64_t work(std::int64_t columns, std::int64_t positives) {
    return positives * (positives + columns);
  }

  template <class Team>
  RK_FN static void row(const Team& team, const Params params, const GalleryRow<S> in, S* grad,
                        S* loss, void* memory) {
    constexpr S kNever = -std::numeric_limits<S>::infinity();
    const Pieces at(Scratch(memory), in.columns, in.member_count);
    const S per_tau = S(1) / params.tau;
    const int p = gather_positives(team, in, params.with_self, at.index);
    const int columns = pad(in.columns);
    const int width = in.negatives() > 0 ? columns : 0;
    const int positives = pad(p);

    team.for_each(width, [&](int k) { at.score[k] = in.is_negative(k) ? in.scores[k] : kNever; });
    team.for_each(positives, [&](int k) {
      at.positive[k] = k < p ? in.scores[at.index[k]] : kNever;
      at.positive_grad[k] = 0;
    });
    team.sync();  // grad may be the memory of in.scores
    team.for_each(columns, [&](int k) { grad[k] = 0; });

    double lost = 0;  // sum over j of 1 - R+_j / R_j
    const S share = in.weight * per_tau / static_cast<S>(p);
    for (int j = 0; j < p; ++j) {
      // sum() begins with a barrier, so every member sees at.positive from here on.
      const S negatives = team.sum(width, [&](int k) {
        const S x = (at.score[k] - at.positive[j]) * per_tau;
        const S u = half_sigmoid(x);
        at.half[k] = u;
        return x < 0 ? u : 1 - u;
      });
      const S among_positives = 1 + team.sum(positives, [&](int k) {
        const S x = (at.positive[k] - at.positive[j]) * per_tau;
        const S half = half_sigmoid(x);  // for j itself, too: a branch around it is not vectorised
        const S u = k == j ? S(0) : half;
        at.positive_half[k] = u;
        return x < 0 || k == j ? u : 1 - u;
      });
      const S rank = among_positives + negatives;
      lost += static_cast<double>(negatives / rank);
      // d(R+/R) = (R - R+)/R^2 for terms of both ranks, -R+/R^2 for terms of R alone.
      const S to_negative = share * among_positives / (rank * rank);
      const S to_positive = -share * negatives / (rank * rank);
      const S from_negatives = team.sum(width, [&](int k) {
        const S slope = at.half[k] - at.half[k] * at.half[k];
        grad[k] += to_negative * slope;
        return slope;
      });
      const S from_positives = team.sum(positives, [&](int k) {
        const S slope = at.positive_half[k] - at.positive_half[k] * at.positive_half[k];
        at.positive_grad[k] += to_positive * slope;
        return slope;
      });
      team.for_each(1, [&](int) {
        at.positive_grad[j] -= to_negative * from_negatives + to_positive * from_positives;
      });
    }
    team.sync();  // at.positive_grad[p-1] was just written
    team.for_each(p, [&](int k) { grad[at.index[k]] = at.positive_grad[k]; });
    team.for_each(1, [&](int) { *loss = static_cast<S>(lost / p); });
  }
};

}  // namespace rk
