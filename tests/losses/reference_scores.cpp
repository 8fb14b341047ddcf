// Average precision on score matrices, every rank counted.
#include "tests/losses/reference.h"

namespace rk::reference {
namespace {

struct Sequence {
  std::vector<double> scores;
  std::vector<bool> positive;
};

// 1 + the number of items above; of equal scores the earlier item is above.
std::vector<double> ranks(const std::vector<double>& v) {
  std::vector<double> out;
  for (std::size_t i = 0; i < v.size(); ++i) {
    double rank = 1;
    for (std::size_t j = 0; j < v.size(); ++j)
      rank += v[j] > v[i] || (v[j] == v[i] && j < i) ? 1 : 0;
    out.push_back(rank);
  }
  return out;
}

// Returns 1 - AP, the mean of (negatives above)/rank; sets `grad` to the black-box gradient of
// weight * (1 - AP).
double precision_lost(const Sequence& sequence, const LossValues& values, double weight,
                      std::vector<double>& grad) {
  const double lambda = values.number("lambda");
  const std::size_t n = sequence.scores.size();
  std::vector<double> v = sequence.scores;
  double positives = 0;
  for (std::size_t i = 0; i < n; ++i) {
    v[i] += (sequence.positive[i] ? -0.5 : 0.5) * values.number("margin");
    positives += sequence.positive[i] ? 1 : 0;
  }
  const std::vector<double> rank = ranks(v);
  std::vector<double> moved = v;
  double lost = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (!sequence.positive[i]) continue;
    double among = 0;
    for (std::size_t j = 0; j < n; ++j) among += sequence.positive[j] && rank[j] <= rank[i] ? 1 : 0;
    lost += (rank[i] - among) / rank[i] / positives;
    // Divide whole numbers first, so that equal quotients stay equal.
    moved[i] +=
        among * static_cast<double>(n) / (rank[i] * rank[i]) * (lambda * weight / positives);
  }
  const std::vector<double> after = ranks(moved);
  grad.assign(n, 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    grad[i] = -(rank[i] - after[i]) / static_cast<double>(n) / lambda;
  }
  return lost;
}

bool any(const Sequence& sequence) {
  for (const bool positive : sequence.positive) {
    if (positive) return true;
  }
  return false;
}

// Each class's loss is a share of a sum. The share scales the gradient that reaches the ranks,
// before the scores move.
Value by_class(const LossData<double>& data, const LossValues& values, double part) {
  Value out;
  out.grad.assign(data.scores.size(), 0.0);
  const auto classes = static_cast<std::size_t>(data.classes);
  std::vector<Sequence> columns(classes);
  for (std::size_t k = 0; k < data.scores.size(); ++k) {
    columns[k % classes].scores.push_back(data.scores[k]);
    columns[k % classes].positive.push_back(data.targets[k] != 0);
  }
  for (const Sequence& column : columns) out.valid += any(column) ? 1 : 0;
  for (std::size_t c = 0; c < classes; ++c) {
    if (!any(columns[c])) continue;
    const double share = 1 / static_cast<double>(out.valid);
    std::vector<double> grad;
    out.loss += part * share * precision_lost(columns[c], values, part * share, grad);
    for (std::size_t i = 0; i < grad.size(); ++i) out.grad[i * classes + c] = grad[i];
  }
  return out;
}

Value over_all(const LossData<double>& data, const LossValues& values, double part) {
  Value out;
  out.grad.assign(data.scores.size(), 0.0);
  Sequence all;
  all.scores = data.scores;
  for (const std::uint8_t target : data.targets) all.positive.push_back(target != 0);
  if (!any(all)) return out;
  out.valid = 1;
  out.loss = part * precision_lost(all, values, part, out.grad);
  return out;
}

Value rambo_map(const LossData<double>& data, const LossValues& values) {
  return by_class(data, values, 1);
}

Value rambo_apc(const LossData<double>& data, const LossValues& values) {
  return over_all(data, values, 1);
}

Value rambo_map_apc(const LossData<double>& data, const LossValues& values) {
  const double beta = values.number("beta");
  Value out = by_class(data, values, 1 - beta);
  const Value all = over_all(data, values, beta);
  out.loss += all.loss;
  for (std::size_t i = 0; i < out.grad.size(); ++i) out.grad[i] += all.grad[i];
  if (beta == 1) out.valid = all.valid;
  return out;
}

const Registered rambo_map_reference({
    .specs = {"rambo_map", "rambo_map:lambda=4,margin=0"},
    .value = rambo_map,
});
const Registered rambo_apc_reference({
    .specs = {"rambo_apc", "rambo_apc:lambda=4,margin=0"},
    .value = rambo_apc,
});
// lambda is not a round number: with beta=0.25,lambda=4 a positive among ties moves, in exact
// arithmetic, onto a negative's very score, and rounding decides which comes first.
const Registered rambo_map_apc_reference({
    .specs = {"rambo_map_apc", "rambo_map_apc:beta=1", "rambo_map_apc:beta=0.3,lambda=3.7"},
    .value = rambo_map_apc,
});

}  // namespace
}  // namespace rk::reference
