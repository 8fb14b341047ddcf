// SupAP with its calibration term, of one query (ROADMAP: Ramzi et al. 2021).
//   R+_j = number of k in P with s_k >= s_j (j included; no gradient)
//   R_j  = R+_j + sum over N of H(s_k - s_j)
//   H(x) = sg(x) for x <= 0;  0.5 + sg(x) for 0 < x <= delta;  rho (x - delta) + offset beyond
//   loss = (1 - lambda) mean over j in P of (1 - R+_j / R_j) + lambda * contrastive
// 1 - R+_j / R_j is computed as the negatives' part of R_j over R_j: nothing cancels, however small
// the loss. The contrastive part (contrastive_row.h) is averaged over all rows: finish() computes
// it from the stats. Queries without a positive have only that part. Writes (1 - lambda) * the AP
// loss and, to grad[0..pad(columns)), dLoss/ds; `grad` may be the memory of in.scores. Cost:
// |P| * columns sigmoids.
#pragma once

#include "kernels/math.h"
#include "kernels/rows/contrastive_row.h"

#include <cstdint>
#include <limits>

namespace rk {

template <class S> struct SupApRow {
  struct Params {
    S tau = S(0.01);
    S rho = 100;
    S delta = S(0.05);
    S offset = 0;
    S lambda = S(0.5);
    bool with_self = false;
    typename ContrastiveRow<S>::Params contrastive;
  };

  struct Pieces {
    RK_BOTH Pieces(Scratch scratch, int columns, int members)
        : score(scratch.take<S>(columns)),
          slope(scratch.take<S>(columns)),
          positive(scratch.take<S>(members)),
          positive_grad(scratch.take<S>(members)),
          index(scratch.take<int>(members)),
          bytes(scratch.bytes()) {}
    S* score;  // of negatives, -infinity elsewhere
    S* slope;  // H' of the current j
    S* positive;
    S* positive_grad;
    int* index;
    std::int64_t bytes;
  };

  static std::int64_t work(std::int64_t columns, std::int64_t positives) {
    return positives * (positives + columns);
  }

  template <class Team>
  RK_FN static void measure(const Team& team, const Params params, const GalleryRow<S> in, S* stats,
                            void* memory) {
    ContrastiveRow<S>::measure(team, params.contrastive, in, stats, memory);
  }

  RK_BOTH static int stats(const Params&) { return ContrastiveRow<S>::kStats; }
  RK_BOTH static int slopes(const Params&, int) { return 0; }
  template <class Team>
  RK_FN static void finish(const Team& team, const BatchNumbers&, const double* totals,
                           Params* params, S*, double* loss) {
    team.for_each(1, [&](int) {
      *loss = static_cast<double>(params->lambda) *
              ContrastiveRow<S>::average(totals, &params->contrastive);
    });
  }

  template <class Team>
  RK_FN static void row(const Team& team, const Params params, const GalleryRow<S> in, S* grad,
                        S* loss, void* memory) {
    constexpr S kNever = -std::numeric_limits<S>::infinity();
    const Pieces at(Scratch(memory), in.columns, in.member_count);
    const S per_tau = S(1) / params.tau;
    int p = gather_positives(team, in, params.with_self, at.index);
    if (params.with_self && p == 1) p = 0;  // the query alone is no positive
    const int columns = pad(in.columns);

    team.for_each(columns, [&](int k) { at.score[k] = in.is_negative(k) ? in.scores[k] : kNever; });
    team.for_each(p, [&](int j) {
      const S s = in.scores[at.index[j]];
      at.positive[j] = s;
      // The query itself counts as a positive in the ranks, but is no pair to calibrate.
      at.positive_grad[j] = at.index[j] == in.self ? S(0)
                                                   : params.lambda * ContrastiveRow<S>::to_positive(
                                                                         params.contrastive, s);
    });
    team.sync();  // grad may be the memory of in.scores
    team.for_each(columns, [&](int k) {
      grad[k] = params.lambda * ContrastiveRow<S>::to_negative(params.contrastive, at.score[k]);
    });

    double lost = 0;  // sum over j of 1 - R+_j / R_j
    const S share = (1 - params.lambda) * in.weight / static_cast<S>(p);
    for (int j = 0; j < p; ++j) {
      const S among =
          team.sum(p, [&](int k) { return at.positive[k] >= at.positive[j] ? S(1) : S(0); });
      const S negatives = team.sum(columns, [&](int k) {
        const S x = at.score[k] - at.positive[j];
        const S u = half_sigmoid(x * per_tau);
        const bool far = x > params.delta;
        at.slope[k] = far ? params.rho : (u - u * u) * per_tau;
        return far ? params.rho * (x - params.delta) + params.offset : x > 0 ? S(1.5) - u : u;
      });
      const S rank = among + negatives;
      lost += static_cast<double>(negatives / rank);
      const S factor = share * among / (rank * rank);
      const S slopes = team.sum(columns, [&](int k) {
        grad[k] += factor * at.slope[k];
        return at.slope[k];
      });
      team.for_each(1, [&](int) { at.positive_grad[j] -= factor * slopes; });
    }
    team.sync();
    team.for_each(p, [&](int k) { grad[at.index[k]] = at.positive_grad[k]; });
    team.for_each(
        1, [&](int) { *loss = p == 0 ? S(0) : (1 - params.lambda) * static_cast<S>(lost / p); });
  }
};

}  // namespace rk
