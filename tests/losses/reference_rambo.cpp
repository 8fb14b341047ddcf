#include "engine/base/integers.h"
#include "tests/losses/reference.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace rk::reference {
namespace {

// Rank 1 is the highest score; equal scores rank in the order of their indices.
std::vector<double> ranks(const std::vector<double>& scores) {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  std::vector<double> out(scores.size());
  for (std::size_t place = 0; place < order.size(); ++place) {
    out[order[place]] = static_cast<double>(place + 1);
  }
  return out;
}

struct Row {
  std::vector<double> v;  // scores with the margin
  std::vector<double> rank;
  std::vector<double> among;  // rank among positives, 0 for negatives
};

Row rank_row(const Query& query, double margin) {
  Row row;
  for (const Item& item : query.gallery) {
    row.v.push_back(item.s + (item.positive ? -margin / 2 : margin / 2));
  }
  row.rank = ranks(row.v);
  for (std::size_t j = 0; j < row.v.size(); ++j) {
    double among = 0;
    for (std::size_t k = 0; k < row.v.size(); ++k) {
      if (query.gallery[j].positive && query.gallery[k].positive && row.rank[k] <= row.rank[j])
        ++among;
    }
    row.among.push_back(among);
  }
  return row;
}

// Rolinek et al. 2020, algorithm 1: rank again after a step of lambda along the incoming gradient.
void add_row_gradient(const Query& query, const Row& row, const std::vector<double>& g,
                      double lambda, std::vector<double>& out) {
  std::vector<double> moved = row.v;
  for (std::size_t k = 0; k < moved.size(); ++k) moved[k] += lambda * g[k];
  const std::vector<double> after = ranks(moved);
  for (std::size_t k = 0; k < moved.size(); ++k) {
    out[at(query.gallery[k].column)] =
        -(row.rank[k] - after[k]) / static_cast<double>(moved.size()) / lambda;
  }
}

std::vector<std::vector<double>> zeros(const LossData<double>& data) {
  return std::vector<std::vector<double>>(
      static_cast<std::size_t>(data.rows),
      std::vector<double>(static_cast<std::size_t>(data.rows + data.memory), 0.0));
}

Value rambo_recall(const LossData<double>& data, const LossValues& values) {
  const double lambda = values.number("lambda");
  const bool twice = values.is("weight", "loglog");
  const bool over_queries = values.is("mean", "queries");
  Value out;
  double pairs = 0;
  for (const Query& query : queries(data)) {
    pairs += static_cast<double>(query.positives().size());
    out.valid += query.positives().empty() ? 0 : 1;
  }
  auto gradient = zeros(data);
  for (const Query& query : queries(data)) {
    if (query.positives().empty()) continue;
    const double counted = over_queries ? static_cast<double>(query.positives().size()) *
                                              static_cast<double>(out.valid)
                                        : pairs;
    const Row row = rank_row(query, values.number("margin"));
    std::vector<double> g(row.v.size(), 0.0);
    for (std::size_t j = 0; j < g.size(); ++j) {
      if (!query.gallery[j].positive) continue;
      const double r = row.rank[j] - row.among[j];
      const double inner = std::log(1 + r);
      out.loss += (twice ? std::log(1 + inner) : inner) / counted;
      g[j] = 1 / (1 + r) / (twice ? 1 + inner : 1) * static_cast<double>(g.size()) / counted;
    }
    add_row_gradient(query, row, g, lambda, gradient[at(query.row)]);
  }
  out.grad = embeddings_gradient(data, gradient);
  return out;
}

Value rambo_ap(const LossData<double>& data, const LossValues& values) {
  const double lambda = values.number("lambda");
  Value out;
  for (const Query& query : queries(data)) out.valid += query.positives().empty() ? 0 : 1;
  auto gradient = zeros(data);
  for (const Query& query : queries(data)) {
    const double share =
        1 / static_cast<double>(out.valid) / static_cast<double>(query.positives().size());
    if (query.positives().empty()) continue;
    const Row row = rank_row(query, values.number("margin"));
    std::vector<double> g(row.v.size(), 0.0);
    for (std::size_t j = 0; j < g.size(); ++j) {
      if (!query.gallery[j].positive) continue;
      out.loss += share * (row.rank[j] - row.among[j]) / row.rank[j];
      // Divide whole numbers first, so that equal quotients stay equal.
      g[j] = row.among[j] * static_cast<double>(g.size()) / (row.rank[j] * row.rank[j]) * share;
    }
    add_row_gradient(query, row, g, lambda, gradient[at(query.row)]);
  }
  out.grad = embeddings_gradient(data, gradient);
  return out;
}

// A rank is a sum of steps, one per score. On average, an error of d moves as many of a row's few
// hundred scores, spread over their range, across a step as a sigmoid of this steepness changes by.
LossTerm rank_term(const LossValues&) { return {50, 0, 0, 3}; }
// Few scores of a small batch lie so close that a rank changes.
constexpr double kShareReached = 1e-4;

const Registered rambo_recall_reference({
    .specs = {"rambo_recall", "rambo_recall:weight=loglog,lambda=0.2,margin=0.05",
              "rambo_recall:mean=queries"},
    .value = rambo_recall,
    .term = rank_term,
    .share_reached = kShareReached,
    .jumps = true,
});
const Registered rambo_ap_reference({
    .specs = {"rambo_ap", "rambo_ap:lambda=0.2,margin=0.3"},
    .value = rambo_ap,
    .term = rank_term,
    .share_reached = kShareReached,
    .jumps = true,
});

}  // namespace
}  // namespace rk::reference
