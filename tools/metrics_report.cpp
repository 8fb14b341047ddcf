#include "tools/metrics_report.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

namespace rk {
namespace {

nlohmann::json number(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
}

nlohmann::json numbers(const std::vector<double>& values) {
  nlohmann::json out = nlohmann::json::array();
  for (const double v : values) out.push_back(number(v));
  return out;
}

std::string text(double value) {
  return std::isfinite(value) ? fmt::format("{:.4f}", value) : std::string("undefined");
}

// 60502 -> "60,502"
std::string grouped(std::int64_t value) {
  if (value < 1000) return std::to_string(value);
  return fmt::format("{},{:03}", grouped(value / 1000), value % 1000);
}

std::string row(const std::string& name, const std::string& value, const std::string& remark = "") {
  return fmt::format("  {:<14}{:>10}{}{}\n", name, value, remark.empty() ? "" : "   ", remark);
}

}  // namespace

nlohmann::json metrics_json(const Metrics& m) {
  nlohmann::json out = {{"num_queries", m.num_queries},
                        {"num_queries_valid", m.num_queries_valid},
                        {"num_gallery", m.num_gallery},
                        {"num_pairs_positive", m.num_pairs_positive},
                        {"num_pairs_negative", m.num_pairs_negative},
                        {"r_precision", number(m.r_precision)},
                        {"map_at_r", number(m.map_at_r)},
                        {"map", number(m.map)},
                        {"roc_auc", number(m.roc_auc)},
                        {"roc_auc_error_bound", number(m.roc_auc_error_bound)},
                        {"jsd", number(m.jsd)},
                        {"jsd_bins", m.jsd_bins},
                        {"pos_mean", number(m.pos_mean)},
                        {"pos_var", number(m.pos_var)},
                        {"neg_mean", number(m.neg_mean)},
                        {"neg_var", number(m.neg_var)},
                        {"dists_intra", number(m.dists_intra)},
                        {"dists_inter", number(m.dists_inter)}};
  for (std::size_t i = 0; i < m.recall_at.size(); ++i) {
    out[fmt::format("recall_at_{}", m.recall_at[i])] = number(m.recall[i]);
  }
  if (!m.per_query.ap.empty()) {
    out["per_query"] = {{"ap", numbers(m.per_query.ap)},
                        {"ap_at_r", numbers(m.per_query.ap_at_r)},
                        {"r_precision", numbers(m.per_query.r_precision)},
                        {"first_hit_rank", m.per_query.first_hit_rank},
                        {"num_relevant", m.per_query.num_relevant},
                        {"num_candidates", m.per_query.num_candidates}};
  }
  return out;
}

std::string protocol_text(const Metrics& m) {
  std::string out = m.self_retrieval ? "against themselves, self removed by index"
                                     : "against the gallery, nothing removed";
  if (m.camera_rule) {
    out = m.self_retrieval ? "against themselves" : "against the gallery";
    out += ", same label and camera removed";
  }
  out += "; inner product as given; ties count against the query";
  if (!m.ties_exact) out += " (up to rounding: equal rows may differ in the last bit here)";
  return out;
}

std::string metrics_table(const std::string& what, const Metrics& m) {
  std::string out = fmt::format(
      "{}\n{} queries, {} candidates: {}\n{} queries have a relevant candidate, {} have none and "
      "are "
      "left out\n\n",
      what, grouped(m.num_queries), grouped(m.num_gallery), protocol_text(m),
      grouped(m.num_queries_valid), grouped(m.num_queries - m.num_queries_valid));
  for (std::size_t i = 0; i < m.recall_at.size(); ++i) {
    out += row(fmt::format("R@{}", m.recall_at[i]), text(m.recall[i]));
  }
  out += row("R-Precision", text(m.r_precision));
  out += row("MAP@R", text(m.map_at_r));
  out += row("mAP", text(m.map));
  out += "\n";
  out += row("ROC-AUC", text(m.roc_auc),
             m.roc_auc_error_bound > 0
                 ? fmt::format("within {:.1e}, from a histogram", m.roc_auc_error_bound)
                 : "");
  out += row("JSD", text(m.jsd), fmt::format("{} bins over [-1, 1]", m.jsd_bins));
  out += row("positives", text(m.pos_mean),
             fmt::format("mean score; variance {}; {} pairs", text(m.pos_var),
                         grouped(m.num_pairs_positive)));
  out += row("negatives", text(m.neg_mean),
             fmt::format("mean score; variance {}; {} pairs", text(m.neg_var),
                         grouped(m.num_pairs_negative)));
  out += row("dists@intra", text(m.dists_intra), "cosine distance inside classes");
  out += row("dists@inter", text(m.dists_inter), "cosine distance between class centres");
  return out;
}

std::string metrics_line(const Metrics& m) {
  return fmt::format("R@1 {}  MAP@R {}  mAP {}", text(m.recall_for(1)), text(m.map_at_r),
                     text(m.map));
}

}  // namespace rk
