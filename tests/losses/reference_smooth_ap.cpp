#include "engine/base/integers.h"
#include "tests/losses/reference.h"

#include <cmath>

namespace rk::reference {
namespace {

// Brown et al. 2020: every rank as its own sum of sigmoids. 1 - R+/R is computed as (R - R+)/R,
// from the negatives' part of R alone: in a solved batch 1 - R+/R would cancel to nothing.
Value smooth_ap(const LossData<double>& data, const LossValues& values) {
  const double tau = values.number("tau");
  const bool official = values.is("compat", "official");
  const auto plain = queries(data);
  Value out;
  for (const Query& query : queries(data, official)) {
    if (plain[at(query.row)].positives().empty()) continue;
    ++out.valid;
    double lost = 0;
    for (const Item& j : query.gallery) {
      if (!j.positive) continue;
      double rank = 1;
      double before = 0;
      for (const Item& k : query.gallery) {
        if (k.column == j.column) continue;
        const double above = 1 / (1 + std::exp(-(k.s - j.s) / tau));
        rank += above;
        if (!k.positive) before += above;
      }
      lost += before / rank;
    }
    out.loss += lost / static_cast<double>(query.positives().size());
  }
  if (out.valid > 0) out.loss /= static_cast<double>(out.valid);
  return out;
}

const Registered smooth_ap_reference({
    .specs = {"smooth_ap", "smooth_ap:tau=0.3", "smooth_ap:compat=official"},
    .value = smooth_ap,
    .term = [](const LossValues& values) { return LossTerm::sigmoid(1 / values.number("tau")); },
});

}  // namespace
}  // namespace rk::reference
