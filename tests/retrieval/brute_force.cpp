#include "tests/retrieval/brute_force.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

namespace rk::reference {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
using Vector = std::vector<double>;

Vector row_of(const EmbeddingView& v, std::int64_t i) {
  return Vector(v.embeddings + i * v.dim, v.embeddings + (i + 1) * v.dim);
}

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

double cosine_distance(const Vector& a, const Vector& b) {
  const double norms = std::sqrt(dot(a, a)) * std::sqrt(dot(b, b));
  return norms > 0 ? 1 - dot(a, b) / norms : 1;
}

double mean(const Vector& v) {
  double sum = 0;
  for (const double x : v) sum += x;
  return v.empty() ? kNaN : sum / static_cast<double>(v.size());
}

double variance(const Vector& v) {
  const double m = mean(v);
  double sum = 0;
  for (const double x : v) sum += (x - m) * (x - m);
  return v.empty() ? kNaN : sum / static_cast<double>(v.size());
}

// Mean distance over all ordered pairs of two different rows.
double mean_distance(const std::vector<Vector>& v) {
  Vector all;
  for (std::size_t i = 0; i < v.size(); ++i) {
    for (std::size_t j = 0; j < v.size(); ++j) {
      if (i != j) all.push_back(cosine_distance(v[i], v[j]));
    }
  }
  return mean(all);
}

double area_under_curve(const Vector& positive, Vector negative) {
  if (positive.empty() || negative.empty()) return kNaN;
  std::sort(negative.begin(), negative.end());
  double wins = 0;
  for (const double p : positive) {
    const auto [low, high] = std::equal_range(negative.begin(), negative.end(), p);
    wins += static_cast<double>(low - negative.begin()) + static_cast<double>(high - low) / 2;
  }
  return wins / static_cast<double>(positive.size()) / static_cast<double>(negative.size());
}

std::vector<std::int64_t> histogram(const Vector& scores) {
  std::vector<std::int64_t> bins(200, 0);
  for (const double s : scores) {
    const double bin = std::clamp(std::floor((s + 1) * 100), 0.0, 199.0);
    ++bins[static_cast<std::size_t>(bin)];
  }
  return bins;
}

double divergence(const Vector& positive, const Vector& negative) {
  if (positive.empty() || negative.empty()) return kNaN;
  const auto p_counts = histogram(positive), q_counts = histogram(negative);
  double sum = 0;
  for (std::size_t i = 0; i < p_counts.size(); ++i) {
    const double p = static_cast<double>(p_counts[i]) / static_cast<double>(positive.size());
    const double q = static_cast<double>(q_counts[i]) / static_cast<double>(negative.size());
    const double m = (p + q) / 2;
    if (p > 0) sum += p * std::log2(p / m) / 2;
    if (q > 0) sum += q * std::log2(q / m) / 2;
  }
  return sum;
}

struct Candidates {
  Vector relevant, irrelevant;
};

Candidates scores_of(const EmbeddingView& queries, const EmbeddingView* gallery, std::int64_t q) {
  const EmbeddingView& candidates = gallery != nullptr ? *gallery : queries;
  const bool cameras = queries.cameras != nullptr && candidates.cameras != nullptr;
  const Vector query = row_of(queries, q);
  Candidates out;
  for (std::int64_t g = 0; g < candidates.count; ++g) {
    if (gallery == nullptr && g == q) continue;
    const bool same = queries.labels[q] == candidates.labels[g];
    if (cameras && same && queries.cameras[q] == candidates.cameras[g]) continue;
    const float* other = candidates.embeddings + g * candidates.dim;
    const double score = std::inner_product(query.begin(), query.end(), other, 0.0);
    (same ? out.relevant : out.irrelevant).push_back(score);
  }
  return out;
}

}  // namespace

PairScores pair_scores(const EmbeddingView& queries, const EmbeddingView* gallery) {
  PairScores out;
  for (std::int64_t q = 0; q < queries.count; ++q) {
    const Candidates scores = scores_of(queries, gallery, q);
    out.positive.insert(out.positive.end(), scores.relevant.begin(), scores.relevant.end());
    out.negative.insert(out.negative.end(), scores.irrelevant.begin(), scores.irrelevant.end());
  }
  return out;
}

Metrics brute_force(const EmbeddingView& queries, const EmbeddingView* gallery,
                    const std::vector<std::int64_t>& recall_at) {
  Metrics out{};
  out.num_queries = queries.count;
  out.recall_at = recall_at;
  out.recall.assign(recall_at.size(), 0.0);
  Vector ap, ap_at_r, r_precision;
  for (std::int64_t q = 0; q < queries.count; ++q) {
    auto [relevant, irrelevant] = scores_of(queries, gallery, q);
    out.per_query.num_relevant.push_back(static_cast<std::int64_t>(relevant.size()));
    out.per_query.num_candidates.push_back(
        static_cast<std::int64_t>(relevant.size() + irrelevant.size()));
    if (relevant.empty()) {
      out.per_query.first_hit_rank.push_back(0);
      for (auto* values : {&out.per_query.ap, &out.per_query.ap_at_r, &out.per_query.r_precision}) {
        values->push_back(kNaN);
      }
      continue;
    }
    std::sort(relevant.rbegin(), relevant.rend());
    double all = 0, within = 0, hits = 0;
    const auto r = static_cast<double>(relevant.size());
    for (std::size_t j = 0; j < relevant.size(); ++j) {
      const double score = relevant[j];
      const auto before =
          std::count_if(irrelevant.begin(), irrelevant.end(), [&](double s) { return s >= score; });
      const double rank = static_cast<double>(j + 1) + static_cast<double>(before);
      const double precision = static_cast<double>(j + 1) / rank;
      all += precision;
      within += rank <= r ? precision : 0;
      hits += rank <= r ? 1 : 0;
      if (j == 0) {
        out.per_query.first_hit_rank.push_back(1 + before);
        for (std::size_t k = 0; k < recall_at.size(); ++k) {
          out.recall[k] += rank <= static_cast<double>(recall_at[k]) ? 1 : 0;
        }
      }
    }
    ap.push_back(all / r);
    ap_at_r.push_back(within / r);
    r_precision.push_back(hits / r);
    out.per_query.ap.push_back(all / r);
    out.per_query.ap_at_r.push_back(within / r);
    out.per_query.r_precision.push_back(hits / r);
  }
  out.num_queries_valid = static_cast<std::int64_t>(ap.size());
  for (double& hits : out.recall) hits = ap.empty() ? kNaN : hits / static_cast<double>(ap.size());
  out.map = mean(ap);
  out.map_at_r = mean(ap_at_r);
  out.r_precision = mean(r_precision);
  const auto [positive, negative] = pair_scores(queries, gallery);
  out.num_pairs_positive = static_cast<std::int64_t>(positive.size());
  out.num_pairs_negative = static_cast<std::int64_t>(negative.size());
  out.pairs.pos_mean = mean(positive);
  out.pairs.pos_var = variance(positive);
  out.pairs.neg_mean = mean(negative);
  out.pairs.neg_var = variance(negative);
  out.pairs.roc_auc = area_under_curve(positive, negative);
  out.pairs.jsd = divergence(positive, negative);
  out.pairs.positive_histogram = histogram(positive);
  out.pairs.negative_histogram = histogram(negative);

  std::map<std::int64_t, std::vector<Vector>> classes;
  for (const EmbeddingView* view : {&queries, gallery}) {
    if (view == nullptr) continue;
    for (std::int64_t i = 0; i < view->count; ++i) {
      classes[view->labels[i]].push_back(row_of(*view, i));
    }
  }
  Vector inside;
  std::vector<Vector> centres;
  for (const auto& [label, rows] : classes) {
    if (rows.size() >= 2) inside.push_back(mean_distance(rows));
    Vector centre(static_cast<std::size_t>(queries.dim), 0.0);
    for (const Vector& row : rows) {
      for (std::size_t d = 0; d < row.size(); ++d) {
        centre[d] += row[d] / static_cast<double>(rows.size());
      }
    }
    if (std::sqrt(dot(centre, centre)) >= 1e-12) centres.push_back(centre);
  }
  out.dists_intra = mean(inside);
  out.dists_inter = mean_distance(centres);
  return out;
}

}  // namespace rk::reference
