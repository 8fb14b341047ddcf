#include "tools/common/metrics_report.h"

#include "engine/base/english.h"
#include "engine/base/printable.h"
#include "retrieval/metric_text.h"
#include "tools/cli/cli.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

namespace rk {
namespace {

nlohmann::json numbers(const std::vector<double>& values) {
  nlohmann::json out = nlohmann::json::array();
  for (const double v : values) out.push_back(number_or_null(v));
  return out;
}

std::string row(const std::string& name, const std::string& value, const std::string& remark = "") {
  return fmt::format("  {:<14}{:>10}{}{}\n", name, value, remark.empty() ? "" : "   ", remark);
}

// "0.6480 to 0.6622; sop"
std::string beside(const Interval* interval, const std::string& protocol) {
  if (interval == nullptr) return protocol;
  return fmt::format("{} to {}; {}", text_of_metric(interval->low), text_of_metric(interval->high),
                     protocol);
}

// "60,502 queries"
std::string grouped_count(std::int64_t count, const char* one) {
  return fmt::format("{} {}", grouped(count), noun_of(count, one));
}

nlohmann::json pair_of(const Interval& interval) {
  return {number_or_null(interval.low), number_or_null(interval.high)};
}

}  // namespace

nlohmann::json number_or_null(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
}

// 60502 -> "60,502"
std::string grouped(std::int64_t value) {
  if (value < 1000) return std::to_string(value);
  return fmt::format("{},{:03}", grouped(value / 1000), value % 1000);
}

nlohmann::json metrics_json(const Metrics& m) {
  nlohmann::json out = {{"num_queries", m.num_queries},
                        {"num_queries_valid", m.num_queries_valid},
                        {"num_gallery", m.num_gallery},
                        {"num_pairs_positive", m.num_pairs_positive},
                        {"num_pairs_negative", m.num_pairs_negative},
                        {"r_precision", number_or_null(m.r_precision)},
                        {"map_at_r", number_or_null(m.map_at_r)},
                        {"map", number_or_null(m.map)},
                        {"roc_auc", number_or_null(m.pairs.roc_auc)},
                        {"roc_auc_error_bound", number_or_null(m.pairs.roc_auc_error_bound)},
                        {"jsd", number_or_null(m.pairs.jsd)},
                        {"jsd_bins", PairMetrics::kJsdBins},
                        {"pos_mean", number_or_null(m.pairs.pos_mean)},
                        {"pos_var", number_or_null(m.pairs.pos_var)},
                        {"neg_mean", number_or_null(m.pairs.neg_mean)},
                        {"neg_var", number_or_null(m.pairs.neg_var)},
                        {"dists_intra", number_or_null(m.dists_intra)},
                        {"dists_inter", number_or_null(m.dists_inter)}};
  for (std::size_t i = 0; i < m.recall_at.size(); ++i) {
    out[fmt::format("recall_at_{}", m.recall_at[i])] = number_or_null(m.recall[i]);
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

std::string protocol_name(const Metrics& m) {
  return fmt::format("{}{}", m.self_retrieval ? "among themselves" : "in the gallery",
                     m.camera_rule ? ", camera rule" : "");
}

nlohmann::json pairs_json(const Metrics& m) {
  nlohmann::json curve = {{"threshold", nlohmann::json::array()},
                          {"false_positive_rate", nlohmann::json::array()},
                          {"recall", nlohmann::json::array()},
                          {"precision", nlohmann::json::array()}};
  for (const PairCurvePoint& point : m.pairs.curve) {
    curve["threshold"].push_back(point.threshold);
    curve["false_positive_rate"].push_back(point.false_positive_rate);
    curve["recall"].push_back(point.recall);
    curve["precision"].push_back(point.precision);
  }
  return {{"histogram",
           {{"low", -1},
            {"high", 1},
            {"positive", m.pairs.positive_histogram},
            {"negative", m.pairs.negative_histogram}}},
          {"curve", curve}};
}

nlohmann::json intervals_json(const Metrics& m, const Intervals& intervals) {
  const RankIntervals& values = intervals.values;
  nlohmann::json out = {{"confidence", intervals.confidence},
                        {"resamples", values.resamples},
                        {"over", intervals.over},
                        {"units", values.units},
                        {"r_precision", pair_of(values.r_precision)},
                        {"map_at_r", pair_of(values.map_at_r)},
                        {"map", pair_of(values.map)}};
  for (std::size_t i = 0; i < m.recall_at.size(); ++i) {
    out[fmt::format("recall_at_{}", m.recall_at[i])] = pair_of(values.recall[i]);
  }
  return out;
}

nlohmann::json draws_json(const DrawnMetrics& m, const DrawOptions& options) {
  nlohmann::json out = {
      {"num_queries", m.num_queries}, {"num_gallery", m.num_gallery}, {"draws", options.draws}};
  const auto put = [&](const std::string& key, const DrawnMetric& metric) {
    out[key] = number_or_null(metric.mean);
    out[key + "_deviation"] = number_or_null(metric.deviation);
    out["per_draw"][key] = numbers(metric.per_draw);
  };
  for (std::size_t i = 0; i < m.recall.size(); ++i) {
    put(fmt::format("recall_at_{}", options.recall_at[i]), m.recall[i]);
  }
  put("map", m.map);
  return out;
}

std::string queries_text(const Metrics& m, const std::string& protocol) {
  return fmt::format(
      "{}, {}: {}{}\n{} with a relevant candidate; left out: {} without\n",
      grouped_count(m.num_queries, "query"), grouped_count(m.num_gallery, "candidate"),
      protocol.empty() ? "" : fmt::format("{}, ", protocol), protocol_text(m),
      grouped_count(m.num_queries_valid, "query"), grouped(m.num_queries - m.num_queries_valid));
}

std::string metrics_table(const std::string& what, const Metrics& m, const std::string& protocol,
                          const Intervals* intervals) {
  const std::string name = protocol.empty() ? protocol_name(m) : protocol;
  std::string out = one_line(what) + "\n" + queries_text(m, protocol);
  const bool drawn = intervals != nullptr && intervals->values.units > 1;
  if (drawn) {
    out += fmt::format("{:g} % intervals, from {} resamples of {} {}\n",
                       100 * intervals->confidence, grouped(intervals->values.resamples),
                       grouped(intervals->values.units), intervals->over);
  }
  out += '\n';
  const auto ranked = [&](const std::string& metric, double value, const Interval* interval) {
    out += row(metric, text_of_metric(value), beside(interval, name));
  };
  const RankIntervals* values = drawn ? &intervals->values : nullptr;
  for (std::size_t i = 0; i < m.recall_at.size(); ++i) {
    ranked(fmt::format("R@{}", m.recall_at[i]), m.recall[i],
           values != nullptr ? &values->recall[i] : nullptr);
  }
  ranked("R-Precision", m.r_precision, values != nullptr ? &values->r_precision : nullptr);
  ranked("MAP@R", m.map_at_r, values != nullptr ? &values->map_at_r : nullptr);
  ranked("mAP", m.map, values != nullptr ? &values->map : nullptr);
  out += '\n';
  out += row("ROC-AUC", text_of_metric(m.pairs.roc_auc),
             m.pairs.roc_auc_error_bound > 0
                 ? fmt::format("within {:.1e}, from a histogram", m.pairs.roc_auc_error_bound)
                 : "");
  out += row("JSD", text_of_metric(m.pairs.jsd),
             fmt::format("{} bins over [-1, 1]", PairMetrics::kJsdBins));
  out += row("positives", text_of_metric(m.pairs.pos_mean),
             fmt::format("mean score; variance {}; {}", text_of_metric(m.pairs.pos_var),
                         grouped_count(m.num_pairs_positive, "pair")));
  out += row("negatives", text_of_metric(m.pairs.neg_mean),
             fmt::format("mean score; variance {}; {}", text_of_metric(m.pairs.neg_var),
                         grouped_count(m.num_pairs_negative, "pair")));
  out += row("dists@intra", text_of_metric(m.dists_intra), "cosine distance inside classes");
  out += row("dists@inter", text_of_metric(m.dists_inter), "cosine distance between class centres");
  return out;
}

std::string draws_table(const std::string& what, const DrawnMetrics& m, const DrawOptions& options,
                        const std::string& protocol) {
  std::string out = fmt::format(
      "{}\n{}, {}: {}, one drawn image of each class is the gallery; mean of {} "
      "draws; inner product as given; ties count against the query\n\n",
      one_line(what), grouped_count(m.num_queries, "query"),
      grouped_count(m.num_gallery, "candidate"), protocol, options.draws);
  const auto drawn = [&](const std::string& metric, const DrawnMetric& values) {
    out += row(metric, text_of_metric(values.mean),
               fmt::format("+- {} (deviation of the draws); {}", text_of_metric(values.deviation),
                           protocol));
  };
  for (std::size_t i = 0; i < m.recall.size(); ++i) {
    drawn(fmt::format("R@{}", options.recall_at[i]), m.recall[i]);
  }
  drawn("mAP", m.map);
  return out;
}

}  // namespace rk
