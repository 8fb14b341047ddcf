// PNP of one query: counts only the negatives before each positive (Li et al. 2022, eq. 5-13).
//   n_j = sum over k in N of sg(s_k - s_j),  sg(x) = 1/(1 + exp(-x/tau)),  j in P
//   loss = mean over j of f(n_j)
//   O: n   Iu: (1+n) log(1+n) - n   Ib: (bn - log(1+bn))/b^2   Ds: log(1+n)   Dq: 1 - (1+n)^-alpha
// Writes the loss and, to grad[0..pad(columns)), weight * dloss/ds; 0 outside P and N. `grad` may
// be the memory of in.scores. P must not be empty. Cost: |P| * columns sigmoids. Equal scores count
// half.
#pragma once

#include "kernels/math.h"
#include "kernels/rows/gallery_row.h"

#include <cstdint>
#include <limits>

namespace rk {

enum class Pnp { kO, kIu, kIb, kDs, kDq };

template <class S> struct PnpRow {
  struct Params {
    Pnp variant = Pnp::kO;
    S tau = S(0.01);
    S b = 2;
    S alpha = 1;
    bool with_self = false;        // the query is one of its own positives
    bool without_minus_n = false;  // Iu as the authors' code has it
  };

  struct Pieces {
    RK_BOTH Pieces(Scratch scratch, int columns, int members)
        : score(scratch.take<S>(columns)),
          half(scratch.take<S>(columns)),
          positive(scratch.take<S>(members)),
          positive_grad(scratch.take<S>(members)),
          index(scratch.take<int>(members)),
          bytes(scratch.bytes()) {}
    S* score;  // of negatives, -infinity elsewhere: such a column adds exactly 0
    S* half;   // small side of the sigmoids of the current j (math.h)
    S* positive;
    S* positive_grad;
    int* index;
    std::int64_t bytes;
  };

  static std::int64_t work(std::int64_t columns, std::int64_t positives) {
    return positives * columns;
  }

  RK_FN static S value(const Params params, S n) {
    switch (params.variant) {
      case Pnp::kO: return n;
      case Pnp::kIu:
        return params.without_minus_n ? (1 + n) * std::log1p(n)
                                      : n * std::log1p(n) - x_minus_log1p(n);
      case Pnp::kIb: return x_minus_log1p(params.b * n) / (params.b * params.b);
      case Pnp::kDs: return std::log1p(n);
      case Pnp::kDq: return -std::expm1(-params.alpha * std::log1p(n));
    }
    return 0;
  }

  RK_FN static S slope(const Params params, S n) {
    switch (params.variant) {
      case Pnp::kO: return 1;
      case Pnp::kIu: return std::log1p(n) + (params.without_minus_n ? S(1) : S(0));
      case Pnp::kIb: return n / (1 + params.b * n);
      case Pnp::kDs: return 1 / (1 + n);
      case Pnp::kDq: return params.alpha * std::exp(-(params.alpha + 1) * std::log1p(n));
    }
    return 0;
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

    team.for_each(width, [&](int k) { at.score[k] = in.is_negative(k) ? in.scores[k] : kNever; });
    team.for_each(p, [&](int j) { at.positive[j] = in.scores[at.index[j]]; });
    team.sync();  // grad may be the memory of in.scores
    team.for_each(columns, [&](int k) { grad[k] = 0; });

    double total = 0;
    const S share = in.weight * per_tau / static_cast<S>(p);
    for (int j = 0; j < p; ++j) {
      const S before = team.sum(width, [&](int k) {
        const S x = (at.score[k] - at.positive[j]) * per_tau;
        const S u = half_sigmoid(x);
        at.half[k] = u;
        return x < 0 ? u : 1 - u;
      });
      total += static_cast<double>(value(params, before));
      const S factor = share * slope(params, before);
      const S slopes = team.sum(width, [&](int k) {
        const S here = at.half[k] - at.half[k] * at.half[k];
        grad[k] += factor * here;
        return here;
      });
      team.for_each(1, [&](int) { at.positive_grad[j] = -factor * slopes; });
    }
    team.sync();
    team.for_each(p, [&](int j) { grad[at.index[j]] = at.positive_grad[j]; });
    team.for_each(1, [&](int) { *loss = static_cast<S>(total / p); });
  }
};

}  // namespace rk
