#include "tests/losses/reference.h"

#include <algorithm>
#include <cmath>

namespace rk::reference {
namespace {

// Cakir et al. 2019: soft histograms of the distances, then eq. 14 as written. A positive's shares
// add up to 1, so 1 - AP is the sum of h+_l (H_l - H+_l) / H_l over the number of positives:
// nothing cancels.
Value fastap(const LossData<double>& data, const LossValues& values) {
  const int bins = values.integer("bins");
  const double width = 4.0 / bins;
  Value out;
  for (const Query& query : queries(data)) {
    if (query.positives().empty()) continue;
    ++out.valid;
    double lost = 0;
    for (int l = 0; l <= bins; ++l) {
      double h = 0;          // positives in bin l
      double negatives = 0;  // negatives up to and including bin l
      double all = 0;
      for (int q = 0; q <= l; ++q) {
        for (const Item& item : query.gallery) {
          const double z = std::clamp(2 - 2 * item.s, 0.0, 4.0);
          const double count = std::max(0.0, 1 - std::abs(z - q * width) / width);
          all += count;
          if (!item.positive) negatives += count;
          if (item.positive && q == l) h += count;
        }
      }
      if (all > 0) lost += h * negatives / all;
    }
    out.loss += lost / static_cast<double>(query.positives().size());
  }
  if (out.valid > 0) out.loss /= static_cast<double>(out.valid);
  return out;
}

const Registered fastap_reference({
    .specs = {"fastap", "fastap:bins=1", "fastap:bins=23"},
    .value = fastap,
    .term = [](const LossValues& values) { return LossTerm{values.number("bins") / 2}; },
    .kinked = true,
    .counts_far_items = {{"fastap:bins=1", "its two bins hold every distance"}},
});

}  // namespace
}  // namespace rk::reference
