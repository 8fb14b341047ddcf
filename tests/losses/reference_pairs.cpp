// Triplet, contrastive and multi-similarity losses.
#include "tests/losses/reference.h"

#include <algorithm>
#include <cmath>

namespace rk::reference {

double contrastive_value(const LossData<double>& data, double pos, double neg) {
  std::vector<double> positives;
  std::vector<double> negatives;
  for (const Query& query : queries(data)) {
    for (const double s : query.positives()) {
      if (s < pos) positives.push_back(pos - s);
    }
    for (const double s : query.negatives()) {
      if (s > neg) negatives.push_back(s - neg);
    }
  }
  const auto mean = [](const std::vector<double>& values) {
    double total = 0;
    for (const double v : values) total += v;
    return values.empty() ? 0 : total / static_cast<double>(values.size());
  };
  return mean(positives) + mean(negatives);
}

namespace {

double euclidean(double s, bool squared) {
  const double square = std::max(0.0, 2 - 2 * s);
  return squared ? square : std::sqrt(square);
}

double triplet(const LossValues& values, double positive, double negative) {
  const bool squared = values.integer("squared") == 1;
  const double gap = euclidean(positive, squared) - euclidean(negative, squared);
  if (values.integer("soft") == 1) return std::log(1 + std::exp(gap));
  return std::max(0.0, values.number("margin") + gap);
}

Value triplet_bh(const LossData<double>& data, const LossValues& values) {
  Value out;
  for (const Query& query : queries(data)) {
    const auto positives = query.positives();
    const auto negatives = query.negatives();
    if (positives.empty() || negatives.empty()) continue;
    ++out.valid;
    out.loss += triplet(values, *std::min_element(positives.begin(), positives.end()),
                        *std::max_element(negatives.begin(), negatives.end()));
  }
  if (out.valid > 0) out.loss /= static_cast<double>(out.valid);
  return out;
}

Value triplet_ba(const LossData<double>& data, const LossValues& values) {
  Value out;
  double count = 0;
  for (const Query& query : queries(data)) {
    if (query.positives().empty() || query.negatives().empty()) continue;
    ++out.valid;
    for (const double p : query.positives()) {
      for (const double n : query.negatives()) {
        const double loss = triplet(values, p, n);
        out.loss += loss;
        count += loss > 0 ? 1 : 0;
      }
    }
  }
  if (count > 0) out.loss /= count;
  return out;
}

Value contrastive(const LossData<double>& data, const LossValues& values) {
  Value out;
  for (const Query& query : queries(data)) out.valid += query.positives().empty() ? 0 : 1;
  if (out.valid > 0) {
    out.loss = contrastive_value(data, values.number("pos"), values.number("neg"));
  }
  return out;
}

Value multi_similarity(const LossData<double>& data, const LossValues& values) {
  const double alpha = values.number("alpha");
  const double beta = values.number("beta");
  const double base = values.number("base");
  const double epsilon = values.number("epsilon");
  const bool mining = values.integer("mining") == 1;
  Value out;
  for (const Query& query : queries(data)) {
    const auto positives = query.positives();
    const auto negatives = query.negatives();
    if (positives.empty() || negatives.empty()) continue;
    ++out.valid;
    const double least = *std::min_element(positives.begin(), positives.end());
    const double most = *std::max_element(negatives.begin(), negatives.end());
    double positive_sum = 0;
    double negative_sum = 0;
    for (const double s : positives) {
      if (!mining || s - epsilon < most) positive_sum += std::exp(-alpha * (s - base));
    }
    for (const double s : negatives) {
      if (!mining || s > least - epsilon) negative_sum += std::exp(beta * (s - base));
    }
    if (positive_sum == 0 || negative_sum == 0) continue;
    out.loss += std::log(1 + positive_sum) / alpha + std::log(1 + negative_sum) / beta;
  }
  if (out.valid > 0) out.loss /= static_cast<double>(out.valid);
  return out;
}

// A pair's distance sqrt(2 - 2s) and its slope change by 1/d^2 of themselves per unit of s. In the
// made-up batches no pair is closer than 0.2 unless both are one point, where the slope is 0.
LossTerm triplet_term(const LossValues& values) {
  const int soft = values.integer("soft");  // one exponential, and one reciprocal in its logarithm
  return {values.integer("squared") == 1 ? 2.0 : 25.0, soft, soft, 3};
}

const Registered triplet_bh_reference({
    .specs = {"triplet_bh", "triplet_bh:squared=1,margin=0.05", "triplet_bh:soft=1"},
    .value = triplet_bh,
    .term = triplet_term,
    .kinked = true,
});
const Registered triplet_ba_reference({
    .specs = {"triplet_ba", "triplet_ba:squared=1", "triplet_ba:soft=1"},
    .value = triplet_ba,
    .term = triplet_term,
    .kinked = true,
    .counts_far_items = {{"triplet_ba:soft=1", "its mean is over every triplet, far or not"}},
});
const Registered contrastive_reference({
    .specs = {"contrastive", "contrastive:pos=0.7,neg=0.1"},
    .value = contrastive,
    .term = [](const LossValues&) { return LossTerm{1}; },
    .kinked = true,
});
const Registered multi_similarity_reference({
    .specs = {"multi_similarity", "multi_similarity:mining=0,beta=20"},
    .value = multi_similarity,
    .term =
        [](const LossValues& values) {
          return LossTerm{std::max(values.number("alpha"), values.number("beta")), 1, 0, 2};
        },
    .kinked = true,
});

}  // namespace
}  // namespace rk::reference
