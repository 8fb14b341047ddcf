// Contrastive loss on similarities: pos - s for positives below `pos`, s - neg for negatives above
// `neg`, each averaged over all rows' pairs whose loss is above 0. So a first pass counts these
// pairs, and the second writes in.weight times the gradient to grad[0..pad(columns)). `grad` may be
// the memory of in.scores.
#pragma once

#include "kernels/rows/batch_numbers.h"
#include "kernels/rows/gallery_row.h"

#include <cstdint>

namespace rk {

template <class S> struct ContrastiveRow {
  struct Params {
    S pos = S(0.9);
    S neg = S(0.4);
    S per_positive = 0;  // 1 / (positive pairs below pos), 0 if there are none
    S per_negative = 0;
  };
  static constexpr int kStats = 4;
  RK_BOTH static int stats(const Params&) { return kStats; }
  RK_BOTH static int slopes(const Params&, int) { return 0; }

  struct Pieces {
    RK_BOTH Pieces(Scratch scratch, int /*columns*/, int members)
        : index(scratch.take<int>(members)),
          positive_grad(scratch.take<S>(members)),
          bytes(scratch.bytes()) {}
    int* index;
    S* positive_grad;
    std::int64_t bytes;
  };

  // stats: the number of positive pairs with a loss and their total loss; the same of negatives.
  template <class Team>
  RK_FN static void measure(const Team& team, const Params params, const GalleryRow<S> in, S* stats,
                            void* memory) {
    int* index = Pieces(Scratch(memory), in.columns, in.member_count).index;
    const int p = gather_positives(team, in, index);
    const S positives =
        team.sum(p, [&](int j) { return in.scores[index[j]] < params.pos ? S(1) : S(0); });
    const S positive_loss = team.sum(p, [&](int j) {
      const S s = in.scores[index[j]];
      return s < params.pos ? params.pos - s : S(0);
    });
    const S negatives = team.sum(in.columns, [&](int k) {
      return in.is_negative(k) && in.scores[k] > params.neg ? S(1) : S(0);
    });
    const S negative_loss = team.sum(in.columns, [&](int k) {
      const S s = in.scores[k];
      return in.is_negative(k) && s > params.neg ? s - params.neg : S(0);
    });
    team.for_each(1, [&](int) {
      stats[0] = positives;
      stats[1] = positive_loss;
      stats[2] = negatives;
      stats[3] = negative_loss;
    });
  }

  // Called by one member alone.
  RK_FN static double average(const double* totals, Params* params) {
    params->per_positive = totals[0] > 0 ? static_cast<S>(1 / totals[0]) : S(0);
    params->per_negative = totals[2] > 0 ? static_cast<S>(1 / totals[2]) : S(0);
    return (totals[0] > 0 ? totals[1] / totals[0] : 0) +
           (totals[2] > 0 ? totals[3] / totals[2] : 0);
  }
  template <class Team>
  RK_FN static void finish(const Team& team, const BatchNumbers&, const double* totals,
                           Params* params, S*, double* loss) {
    team.for_each(1, [&](int) { *loss = average(totals, params); });
  }

  // dloss/ds of a positive, of a negative.
  RK_FN static S to_positive(const Params params, S s) {
    return s < params.pos ? -params.per_positive : S(0);
  }
  RK_FN static S to_negative(const Params params, S s) {
    return s > params.neg ? params.per_negative : S(0);
  }

  template <class Team>
  RK_FN static void row(const Team& team, const Params params, const GalleryRow<S> in, S* grad,
                        S* loss, void* memory) {
    const Pieces at(Scratch(memory), in.columns, in.member_count);
    const int p = gather_positives(team, in, at.index);
    team.for_each(p, [&](int j) {
      at.positive_grad[j] = in.weight * to_positive(params, in.scores[at.index[j]]);
    });
    team.sync();  // grad may be the memory of in.scores
    team.for_each(pad(in.columns), [&](int k) {
      grad[k] = in.is_negative(k) ? in.weight * to_negative(params, in.scores[k]) : S(0);
    });
    team.sync();
    team.for_each(p, [&](int j) { grad[at.index[j]] = at.positive_grad[j]; });
    team.for_each(1, [&](int) { *loss = 0; });  // finish() has computed it from the stats
  }
};

}  // namespace rk
