// SupAP and Recall@k.
#include "engine/base/integers.h"
#include "tests/losses/reference.h"

#include <algorithm>
#include <cmath>

namespace rk::reference {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

Value sup_ap(const LossData<double>& data, const LossValues& values) {
  const double tau = values.number("tau");
  const double rho = values.number("rho");
  const double delta = values.number("delta");
  const double lambda = values.number("lambda");
  const double given = values.number("offset");
  const double offset = given > 0 ? given : 0.5 + sigmoid(delta / tau);
  const auto above = [&](double x) {
    if (x <= 0) return sigmoid(x / tau);
    if (x <= delta) return 0.5 + sigmoid(x / tau);
    return rho * (x - delta) + offset;
  };
  const auto plain = queries(data);
  Value out;
  double total = 0;
  for (const Query& query : queries(data, values.is("compat", "official"))) {
    if (plain[at(query.row)].positives().empty()) continue;
    ++out.valid;
    double lost = 0;
    for (const double j : query.positives()) {
      double among = 0;
      for (const double k : query.positives()) among += k >= j ? 1 : 0;
      double before = 0;
      for (const double k : query.negatives()) before += above(k - j);
      lost += before / (among + before);  // 1 - among/rank, without cancellation
    }
    total += lost / static_cast<double>(query.positives().size());
  }
  if (out.valid == 0) return out;
  out.loss = (1 - lambda) * total / static_cast<double>(out.valid) +
             lambda * contrastive_value(data, 0.9, 0.6);
  return out;
}

Value recall_at_k(const LossData<double>& data, const LossValues& values) {
  const double tau = values.number("tau");
  const double tau_k = values.number("tau_k");
  const bool official = values.is("compat", "official");
  const auto with_self = queries(data, true);
  Value out;
  for (const Query& query : queries(data)) {
    if (query.positives().empty()) continue;
    ++out.valid;
    const auto& gallery = official ? with_self[at(query.row)].gallery : query.gallery;
    std::vector<double> ranks;
    for (const Item& j : query.gallery) {
      if (!j.positive) continue;
      double rank = 1;
      for (const Item& x : gallery) {
        if (x.column != j.column) rank += sigmoid((x.s - j.s) / tau);
      }
      ranks.push_back(rank);
    }
    double lost = 0;  // 1 - recall
    for (double k : {1.0, 2.0, 4.0, 8.0, 16.0}) {
      if (official) k = std::min(k, static_cast<double>(data.rows));
      const auto positives = static_cast<double>(ranks.size());
      double found = 0;
      double missed = 0;
      for (const double rank : ranks) {
        found += sigmoid((k - rank) / tau_k);
        missed += sigmoid((rank - k) / tau_k);
      }
      lost += (positives <= k ? missed : k - std::min(k, found)) / std::min(k, positives) / 5;
    }
    out.loss += lost;
  }
  if (out.valid > 0) out.loss /= static_cast<double>(out.valid);
  return out;
}

// Beyond delta, where the sigmoid has reached 1, follows a line of slope rho.
const Registered sup_ap_reference({
    .specs = {"sup_ap", "sup_ap:lambda=0,compat=official", "sup_ap:offset=1.44,rho=20,lambda=0.2"},
    .value = sup_ap,
    .term =
        [](const LossValues& values) {
          return LossTerm::sigmoid(std::max(1 / values.number("tau"), values.number("rho")));
        },
    .kinked = true,
});
// A second sigmoid, over ranks: ranks up to 16 count, each with an error relative to itself.
const Registered recall_at_k_reference({
    .specs = {"recall_at_k", "recall_at_k:tau=0.1,tau_k=3", "recall_at_k:compat=official"},
    .value = recall_at_k,
    .term =
        [](const LossValues& values) {
          return LossTerm::sigmoid((1 + 16 / values.number("tau_k")) / values.number("tau"), 2);
        },
    .share_reached = 1e-4,  // both sigmoids are seldom steep for the same pair
});

}  // namespace
}  // namespace rk::reference
