// The area under the ROC curve, the Wilcoxon statistic, and the histogram loss.
#include "tests/losses/reference.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace rk::reference {
namespace {

// Scores of the hardest pairs of the queries that have one, or of all pairs.
struct Pairs {
  std::vector<double> positives;
  std::vector<double> negatives;
  std::int64_t valid = 0;
};

Pairs pairs(const LossData<double>& data, bool hardest) {
  Pairs out;
  for (const Query& query : queries(data)) {
    const auto p = query.positives();
    const auto n = query.negatives();
    const bool both = !p.empty() && !n.empty();
    out.valid += both ? 1 : 0;
    if (!hardest) {
      out.positives.insert(out.positives.end(), p.begin(), p.end());
      out.negatives.insert(out.negatives.end(), n.begin(), n.end());
    } else if (both) {
      out.positives.push_back(*std::min_element(p.begin(), p.end()));
      out.negatives.push_back(*std::max_element(n.begin(), n.end()));
    }
  }
  return out;
}

// The steepness that goes with a step: table 1 of Gajic et al. 2022.
double steepness(double ds) {
  const std::map<double, double> table = {{0.05, 42.2}, {0.1, 22.47}, {0.2, 12.02}};
  return table.at(ds);
}

Value auc(const LossData<double>& data, const LossValues& values, bool hardest) {
  const double ds = values.number("ds");
  const double r = steepness(ds);
  const Pairs all = pairs(data, hardest);
  Value out;
  out.valid = all.valid;
  if (out.valid == 0) return out;
  // The mean of the sigmoids, or with sign = -1 of 1 - sigmoid.
  const auto rate = [&](const std::vector<double>& scores, double t, double sign = 1) {
    double total = 0;
    for (const double s : scores) total += 1 / (1 + std::exp(-sign * r * (s - t)));
    return total / static_cast<double>(scores.size());
  };
  // 1 - the area under the curve is the area above it: between the curve and a height of 1 from the
  // first F to the last, and the full height beyond these two.
  out.loss = rate(all.negatives, -1, -1);
  const int steps = static_cast<int>(std::round(2 / ds));
  for (int m = 0; m < steps; ++m) {
    const double t = -1 + m * ds;
    out.loss += (rate(all.positives, t, -1) + rate(all.positives, t + ds, -1)) / 2 *
                (rate(all.negatives, t) - rate(all.negatives, t + ds));
  }
  out.loss += rate(all.negatives, -1 + steps * ds);
  return out;
}

Value auc_bh(const LossData<double>& data, const LossValues& values) {
  return auc(data, values, true);
}
Value auc_ba(const LossData<double>& data, const LossValues& values) {
  return auc(data, values, false);
}

Value wilcoxon_bh(const LossData<double>& data, const LossValues& values) {
  const Pairs hardest = pairs(data, true);
  Value out;
  out.valid = hardest.valid;
  if (out.valid == 0) return out;
  double total = 0;
  for (const double p : hardest.positives) {
    for (const double n : hardest.negatives) {
      total += 1 / (1 + std::exp(values.number("r") * (p - n)));  // 1 - sigmoid
    }
  }
  out.loss = total / static_cast<double>(out.valid * out.valid);
  return out;
}

Value histogram(const LossData<double>& data, const LossValues& values) {
  const int bins = values.integer("bins");
  const Pairs all = pairs(data, false);
  Value out;
  out.valid = all.valid;
  if (out.valid == 0) return out;
  const auto share = [&](const std::vector<double>& scores, int node) {
    double total = 0;
    for (const double s : scores) {
      const double t = -1 + 2.0 * node / bins;
      total += std::max(0.0, 1 - std::abs(std::clamp(s, -1.0, 1.0) - t) * bins / 2);
    }
    return total / static_cast<double>(scores.size());
  };
  double running = 0;
  for (int r = 0; r <= bins; ++r) {
    running += share(all.positives, r);
    out.loss += share(all.negatives, r) * running;
  }
  return out;
}

const Registered auc_bh_reference({
    .specs = {"auc_bh", "auc_bh:ds=0.2"},
    .value = auc_bh,
    .term =
        [](const LossValues& values) { return LossTerm::sigmoid(steepness(values.number("ds"))); },
});
// Its sigmoids are computed from products of two exponentials, at most exp(42.5) each.
const Registered auc_ba_reference({
    .specs = {"auc_ba", "auc_ba:ds=0.1"},
    .value = auc_ba,
    .term =
        [](const LossValues& values) {
          return LossTerm{steepness(values.number("ds")), 2, 1, 0, 42.5};
        },
});
const Registered wilcoxon_bh_reference({
    .specs = {"wilcoxon_bh", "wilcoxon_bh:r=7"},
    .value = wilcoxon_bh,
    .term = [](const LossValues& values) { return LossTerm::sigmoid(values.number("r")); },
});
const Registered histogram_reference({
    .specs = {"histogram", "histogram:bins=13", "histogram:bins=4096"},
    .value = histogram,
    .term = [](const LossValues& values) { return LossTerm{values.number("bins") / 2}; },
    .kinked = true,
});

}  // namespace
}  // namespace rk::reference
