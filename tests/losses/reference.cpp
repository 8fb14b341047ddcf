#include "tests/losses/reference.h"

namespace rk::reference {
namespace {

double dot(const double* a, const double* b, std::int64_t dim) {
  double total = 0;
  for (std::int64_t d = 0; d < dim; ++d) total += a[d] * b[d];
  return total;
}

const double* column(const LossData<double>& data, std::int64_t j) {
  return j < data.rows ? data.embeddings.data() + j * data.dim
                       : data.memory_embeddings.data() + (j - data.rows) * data.dim;
}

std::vector<double> scores_of(const std::vector<Item>& gallery, bool positive) {
  std::vector<double> out;
  for (const Item& item : gallery) {
    if (item.positive == positive) out.push_back(item.s);
  }
  return out;
}

}  // namespace

std::vector<double> Query::positives() const { return scores_of(gallery, true); }
std::vector<double> Query::negatives() const { return scores_of(gallery, false); }

std::vector<Query> queries(const LossData<double>& data, bool with_self) {
  const auto at = [&](const std::vector<std::int64_t>& batch,
                      const std::vector<std::int64_t>& memory, std::int64_t j) {
    return j < data.rows ? batch[static_cast<std::size_t>(j)]
                         : memory[static_cast<std::size_t>(j - data.rows)];
  };
  std::vector<Query> out;
  for (std::int64_t i = 0; i < data.rows; ++i) {
    Query query;
    query.row = static_cast<int>(i);
    for (std::int64_t j = 0; j < data.rows + data.memory; ++j) {
      const bool same_image =
          !data.identities.empty() &&
          at(data.identities, data.memory_identities, j) == at(data.identities, {}, i);
      if (j == i ? !with_self : same_image) continue;
      query.gallery.push_back({dot(column(data, i), column(data, j), data.dim),
                               at(data.labels, data.memory_labels, j) == at(data.labels, {}, i),
                               static_cast<int>(j)});
    }
    out.push_back(std::move(query));
  }
  return out;
}

std::vector<double> embeddings_gradient(const LossData<double>& data,
                                        const std::vector<std::vector<double>>& g) {
  std::vector<double> grad(data.embeddings.size(), 0.0);
  for (std::int64_t i = 0; i < data.rows; ++i) {
    for (std::int64_t j = 0; j < data.rows + data.memory; ++j) {
      const double factor = g[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
      for (std::int64_t d = 0; d < data.dim; ++d) {
        grad[static_cast<std::size_t>(i * data.dim + d)] += factor * column(data, j)[d];
        if (j < data.rows) {
          grad[static_cast<std::size_t>(j * data.dim + d)] += factor * column(data, i)[d];
        }
      }
    }
  }
  return grad;
}

const std::map<std::string, Reference>& references() {
  static const std::map<std::string, Reference> list = {
      {"fastap", {fastap, {"fastap", "fastap:bins=1", "fastap:bins=23"}}},
      {"smooth_ap", {smooth_ap, {"smooth_ap", "smooth_ap:tau=0.3", "smooth_ap:compat=official"}}},
      {"rambo_recall",
       {rambo_recall, {"rambo_recall", "rambo_recall:weight=loglog,lambda=0.2,margin=0.05"}}},
      {"rambo_ap", {rambo_ap, {"rambo_ap", "rambo_ap:lambda=0.2,margin=0.3"}}},
      {"pnp_o", {pnp_o, {"pnp_o", "pnp_o:compat=official"}}},
      {"pnp_iu", {pnp_iu, {"pnp_iu", "pnp_iu:compat=official"}}},
      {"pnp_ib", {pnp_ib, {"pnp_ib", "pnp_ib:b=5,compat=official"}}},
      {"pnp_ds", {pnp_ds, {"pnp_ds", "pnp_ds:tau=0.1,compat=official"}}},
      {"pnp_dq", {pnp_dq, {"pnp_dq", "pnp_dq:alpha=4,compat=official"}}},
      {"auc_bh", {auc_bh, {"auc_bh", "auc_bh:ds=0.2"}}},
      {"auc_ba", {auc_ba, {"auc_ba", "auc_ba:ds=0.1"}}},
      {"wilcoxon_bh", {wilcoxon_bh, {"wilcoxon_bh", "wilcoxon_bh:r=7"}}},
      {"triplet_bh",
       {triplet_bh, {"triplet_bh", "triplet_bh:squared=1,margin=0.05", "triplet_bh:soft=1"}}},
      {"triplet_ba", {triplet_ba, {"triplet_ba", "triplet_ba:squared=1", "triplet_ba:soft=1"}}},
      {"nsl", {nsl, {"nsl", "nsl:scale=40"}}},
      {"proxy_anchor", {proxy_anchor, {"proxy_anchor", "proxy_anchor:margin=0.3,alpha=8"}}},
      {"contrastive", {contrastive, {"contrastive", "contrastive:pos=0.7,neg=0.1"}}},
      {"histogram", {histogram, {"histogram", "histogram:bins=13"}}},
      {"multi_similarity",
       {multi_similarity, {"multi_similarity", "multi_similarity:mining=0,beta=20"}}},
      {"recall_at_k",
       {recall_at_k,
        {"recall_at_k", "recall_at_k:tau=0.1,tau_k=3", "recall_at_k:compat=official"}}},
      {"sup_ap",
       {sup_ap,
        {"sup_ap", "sup_ap:lambda=0,compat=official", "sup_ap:offset=1.44,rho=20,lambda=0.2"}}},
      {"rambo_map", {rambo_map, {"rambo_map", "rambo_map:lambda=4,margin=0"}}},
      {"rambo_apc", {rambo_apc, {"rambo_apc", "rambo_apc:lambda=4,margin=0"}}},
      // lambda is no round number: with beta=0.25,lambda=4 a positive among ties moves to a
      // negative's very score in exact fractions, and rounding says who comes first.
      {"rambo_map_apc",
       {rambo_map_apc,
        {"rambo_map_apc", "rambo_map_apc:beta=1", "rambo_map_apc:beta=0.3,lambda=3.7"}}},
  };
  return list;
}

}  // namespace rk::reference
