#include "engine/base/integers.h"
#include "tests/losses/reference.h"

#include <cmath>
#include <functional>

namespace rk::reference {
namespace {

// Li et al. 2022: mean over queries and positives of f(number of negatives before the positive).
Value pnp(const LossData<double>& data, const LossValues& values,
          const std::function<double(double)>& f) {
  const double tau = values.number("tau");
  const auto plain = queries(data);
  Value out;
  for (const Query& query : queries(data, values.is("compat", "official"))) {
    if (plain[at(query.row)].positives().empty()) continue;
    ++out.valid;
    double total = 0;
    for (const double positive : query.positives()) {
      double n = 0;
      for (const double negative : query.negatives()) {
        n += 1 / (1 + std::exp(-(negative - positive) / tau));
      }
      total += f(n);
    }
    out.loss += total / static_cast<double>(query.positives().size());
  }
  if (out.valid > 0) out.loss /= static_cast<double>(out.valid);
  return out;
}

Value pnp_o(const LossData<double>& data, const LossValues& values) {
  return pnp(data, values, [](double n) { return n; });
}

Value pnp_iu(const LossData<double>& data, const LossValues& values) {
  const double less = values.is("compat", "official") ? 0 : 1;
  return pnp(data, values, [&](double n) { return (1 + n) * std::log(1 + n) - less * n; });
}

Value pnp_ib(const LossData<double>& data, const LossValues& values) {
  const double b = values.number("b");
  return pnp(data, values, [&](double n) { return (b * n - std::log(1 + b * n)) / (b * b); });
}

Value pnp_ds(const LossData<double>& data, const LossValues& values) {
  return pnp(data, values, [](double n) { return std::log(1 + n); });
}

Value pnp_dq(const LossData<double>& data, const LossValues& values) {
  const double alpha = values.number("alpha");
  return pnp(data, values, [&](double n) { return 1 - std::pow(1 + n, -alpha); });
}

// The steepness: a relative error of n is multiplied by n f'(n) / f(n) in the penalty f, at most 2,
// and by n f''(n) / f'(n) in its slope, at most 1 + alpha for pnp_dq.
const Registered pnp_o_reference({
    .specs = {"pnp_o", "pnp_o:compat=official"},
    .value = pnp_o,
    .term = [](const LossValues& values) { return LossTerm::sigmoid(1 / values.number("tau")); },
});
const Registered pnp_iu_reference({
    .specs = {"pnp_iu", "pnp_iu:compat=official"},
    .value = pnp_iu,
    .term = [](const LossValues& values) { return LossTerm::sigmoid(2 / values.number("tau"), 2); },
});
const Registered pnp_ib_reference({
    .specs = {"pnp_ib", "pnp_ib:b=5,compat=official"},
    .value = pnp_ib,
    .term = [](const LossValues& values) { return LossTerm::sigmoid(2 / values.number("tau"), 2); },
});
const Registered pnp_ds_reference({
    .specs = {"pnp_ds", "pnp_ds:tau=0.1,compat=official"},
    .value = pnp_ds,
    .term = [](const LossValues& values) { return LossTerm::sigmoid(1 / values.number("tau"), 1); },
});
const Registered pnp_dq_reference({
    .specs = {"pnp_dq", "pnp_dq:alpha=4,compat=official"},
    .value = pnp_dq,
    .term =
        [](const LossValues& values) {
          return LossTerm::sigmoid((1 + values.number("alpha")) / values.number("tau"), 2);
        },
});

}  // namespace
}  // namespace rk::reference
