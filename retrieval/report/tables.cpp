#include "retrieval/report/tables.h"

#include "retrieval/metric_text.h"
#include "retrieval/report/cards.h"
#include "retrieval/report/confusions.h"
#include "retrieval/report/html.h"
#include "retrieval/statistics/per_class.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

namespace rk {
namespace {

constexpr std::size_t kClasses = 20, kClassesOfTwo = 12, kConfusions = 20;

std::string interval_text(const Interval& interval) {
  if (!std::isfinite(interval.low)) return "";
  return fmt::format("{:.4f} to {:.4f}", interval.low, interval.high);
}

struct Row {
  std::string name{}, meaning{};
  std::vector<double> values{};                     // one per run
  std::vector<std::optional<Interval>> interval{};  // likewise
  std::optional<Interval> difference{};
};

using Of = double (*)(const Metrics&);

Row plain_row(const Report& report, const std::string& name, const std::string& meaning, Of value) {
  Row row{.name = name, .meaning = meaning};
  for (const ReportedRun& run : report.runs) {
    row.values.push_back(value(run.metrics));
    row.interval.emplace_back();
  }
  return row;
}

Row ranked_row(const Report& report, const std::string& name, const std::string& meaning, Of value,
               Interval RankIntervals::*of) {
  Row row = plain_row(report, name, meaning, value);
  for (std::size_t r = 0; r < report.runs.size(); ++r) {
    row.interval[r] = report.runs[r].intervals.*of;
  }
  if (report.difference) row.difference = (*report.difference).*of;
  return row;
}

std::vector<Row> rows_of(const Report& report) {
  std::vector<Row> rows;
  const Metrics& first = report.runs.front().metrics;
  for (std::size_t i = 0; i < first.recall_at.size(); ++i) {
    const std::int64_t k = first.recall_at[i];
    Row row{.name = fmt::format("R@{}", k),
            .meaning = k == 1 ? std::string("queries whose first result is right")
                              : fmt::format("queries with a right result in the first {}", k)};
    for (const ReportedRun& run : report.runs) {
      row.values.push_back(run.metrics.recall[i]);
      row.interval.emplace_back(run.intervals.recall[i]);
    }
    if (report.difference) row.difference = report.difference->recall[i];
    rows.push_back(std::move(row));
  }
  rows.push_back(ranked_row(
      report, "MAP@R", "precision along the first R results, R: how many there are to find",
      [](const Metrics& m) { return m.map_at_r; }, &RankIntervals::map_at_r));
  rows.push_back(ranked_row(
      report, "mAP", "precision along the whole ranking", [](const Metrics& m) { return m.map; },
      &RankIntervals::map));
  rows.push_back(ranked_row(
      report, "R-Precision", "right ones among the first R",
      [](const Metrics& m) { return m.r_precision; }, &RankIntervals::r_precision));
  rows.push_back(plain_row(report, "ROC-AUC", "chance that a pair of one class is the more similar",
                           [](const Metrics& m) { return m.pairs.roc_auc; }));
  rows.push_back(plain_row(report, "JSD",
                           report.scores_leave_range
                               ? "says little: scores leave [-1, 1]"
                               : "how far similarities of one class and of others lie apart",
                           [](const Metrics& m) { return m.pairs.jsd; }));
  if (const std::optional<double> nmi = report.runs.front().nmi; nmi && report.runs.size() == 1) {
    rows.push_back({.name = "NMI",
                    .meaning = "how far clusters by k-means are the classes",
                    .values = {*nmi},
                    .interval = {std::nullopt}});
  }
  rows.push_back(plain_row(report, "mean of positives", "similarity of pairs of one class",
                           [](const Metrics& m) { return m.pairs.pos_mean; }));
  rows.push_back(plain_row(report, "mean of negatives", "similarity of other pairs",
                           [](const Metrics& m) { return m.pairs.neg_mean; }));
  rows.push_back(plain_row(report, "dists@intra", "cosine distance inside classes",
                           [](const Metrics& m) { return m.dists_intra; }));
  rows.push_back(plain_row(report, "dists@inter", "cosine distance between class centres",
                           [](const Metrics& m) { return m.dists_inter; }));
  return rows;
}

std::string tiles(const std::vector<Row>& rows) {
  std::string out = "<ul class=\"tiles\">\n";
  for (const char* name : {"R@1", "MAP@R", "mAP", "ROC-AUC", "JSD"}) {
    const auto row =
        std::find_if(rows.begin(), rows.end(), [&](const Row& each) { return each.name == name; });
    if (row == rows.end()) continue;
    const std::string interval =
        row->interval[0] ? interval_text(*row->interval[0]) : std::string();
    out += fmt::format(
        "<li>{}<span class=\"value\">{}</span><span class=\"under\">{}</span></li>\n", name,
        text_of_metric(row->values[0]), interval.empty() ? row->meaning : interval);
  }
  return out + "</ul>\n";
}

// A column's head, as HTML.
struct Head {
  std::string text;
  const char* classes = "";
};

// A table in a region of its own, which scrolls where the page is too narrow for it.
std::string table(const std::vector<Head>& heads, const std::string& rows) {
  std::string out =
      "<div class=\"wide\" tabindex=\"0\" role=\"region\" "
      "aria-label=\"Table\"><table>\n<thead><tr>";
  for (const Head& head : heads) {
    const std::string classes =
        *head.classes == 0 ? std::string() : fmt::format(" class=\"{}\"", head.classes);
    out += fmt::format("<th scope=\"col\"{}>{}</th>", classes, head.text);
  }
  return out + "</tr></thead><tbody>\n" + rows + "</tbody></table></div>\n";
}

std::string one_run(const Report& report, const std::vector<Row>& rows) {
  std::string body;
  for (const Row& row : rows) {
    body += fmt::format(
        "<tr><th scope=\"row\">{0}<span class=\"under below\">{3}</span></th><td>{1}</td><td "
        "class=\"interval\">{2}</td><td class=\"text beside\">{3}</td></tr>\n",
        row.name, text_of_metric(row.values[0]),
        row.interval[0] ? interval_text(*row.interval[0]) : "", row.meaning);
  }
  return tiles(rows) + table({{"Metric"},
                              {"Value"},
                              {fmt::format("{:g} % interval", 100 * report.confidence)},
                              {"What it is", "text beside"}},
                             body);
}

// Which of two runs is higher, if the interval of their difference excludes 0.
std::string verdict(const Report& report, const Interval& difference) {
  if (!std::isfinite(difference.low)) return "";
  if (difference.low > 0) return escaped(report.runs[1].name) + " is higher";
  if (difference.high < 0) return escaped(report.runs[0].name) + " is higher";
  return "not told apart";
}

std::string two_runs(const Report& report, const std::vector<Row>& rows) {
  std::string body;
  for (const Row& row : rows) {
    const auto value = [&](std::size_t r) {
      return fmt::format(
          "<td>{}{}</td>", text_of_metric(row.values[r]),
          row.interval[r]
              ? fmt::format("<br class=\"beside\"/><span class=\"interval beside\">{}</span>",
                            interval_text(*row.interval[r]))
              : std::string());
    };
    const std::string difference = text_of_difference(row.values[1] - row.values[0]);
    const std::string interval =
        row.difference && std::isfinite(row.difference->low)
            ? fmt::format("{} to {}", text_of_difference(row.difference->low),
                          text_of_difference(row.difference->high))
            : std::string();
    const std::string told = row.difference ? verdict(report, *row.difference) : std::string();
    body += fmt::format(
        "<tr><th scope=\"row\">{0}<span class=\"under below\">{3}{4}{5}</span></th>{1}{2}<td "
        "class=\"beside\">{3}</td><td class=\"interval beside\">{6}</td><td class=\"text "
        "beside\">{7}</td></tr>\n",
        row.name, value(0), value(1), difference,
        interval.empty() ? interval
                         : fmt::format("<br/><span class=\"interval\">({})</span>", interval),
        told.empty() ? told : "<br/>" + told, interval, told);
  }
  return table({{"Metric"},
                {escaped(report.runs[0].name)},
                {escaped(report.runs[1].name)},
                {"Difference", "beside"},
                {fmt::format("{:g} % interval", 100 * report.confidence), "beside"},
                {"Told apart?", "text beside"}},
               body);
}

std::string hardest_classes(const Report& report) {
  const auto rows = hardest(
      metrics_by_group(report.runs.front().metrics.per_query, report.queries->labels), kClasses);
  std::string body;
  for (const GroupMetrics& row : rows) {
    body += fmt::format(
        "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
        escaped(class_name(*report.queries, row.group)), row.queries_valid,
        text_of_metric(row.recall_at_1), text_of_metric(row.map_at_r), text_of_metric(row.map));
  }
  return "<h3>Hardest classes</h3>\n" +
         table({{"Class"}, {"Queries"}, {"R@1"}, {"MAP@R"}, {"mAP"}}, body);
}

struct ClassChange {
  std::int64_t label, queries;
  double before, after;
};

std::string changed_classes(const Report& report) {
  std::vector<ClassChange> changes;
  const auto before = metrics_by_group(report.runs[0].metrics.per_query, report.queries->labels);
  const auto after = metrics_by_group(report.runs[1].metrics.per_query, report.queries->labels);
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (!std::isfinite(before[i].map_at_r)) continue;
    changes.push_back(
        {before[i].group, before[i].queries_valid, before[i].map_at_r, after[i].map_at_r});
  }
  std::stable_sort(changes.begin(), changes.end(), [](const ClassChange& a, const ClassChange& b) {
    return std::abs(a.after - a.before) > std::abs(b.after - b.before);
  });
  changes.resize(std::min(changes.size(), kClassesOfTwo));
  std::string body;
  for (const ClassChange& row : changes) {
    body += fmt::format(
        "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
        escaped(class_name(*report.queries, row.label)), row.queries, text_of_metric(row.before),
        text_of_metric(row.after), text_of_difference(row.after - row.before));
  }
  return "<h3>Classes that differ most</h3>\n" + table({{"Class"},
                                                        {"Queries"},
                                                        {"MAP@R, " + escaped(report.runs[0].name)},
                                                        {"MAP@R, " + escaped(report.runs[1].name)},
                                                        {"Difference"}},
                                                       body);
}

std::string confusions(const Report& report, const ReportedRun& run) {
  const auto rows = most_confused(*report.queries, report.gallery, run.metrics.per_query,
                                  run.neighbours, kConfusions);
  const EmbeddingSet& gallery = report.gallery != nullptr ? *report.gallery : *report.queries;
  const std::string title =
      report.runs.size() > 1
          ? fmt::format("<h3>Most confused classes, {}</h3>\n", escaped(run.name))
          : std::string("<h3>Most confused classes</h3>\n");
  if (rows.empty()) {
    return title + (run.metrics.num_queries_valid > 0 ? "<p>Every first result is right.</p>\n"
                                                      : "<p>No query has anything to find.</p>\n");
  }
  std::string body;
  for (const Confusion& row : rows) {
    body += fmt::format(
        "<tr><th scope=\"row\">{}</th><td class=\"text\">{}</td><td>{}</td><td>{}</td></tr>\n",
        escaped(class_name(*report.queries, row.label)),
        escaped(class_name(gallery, row.taken_for)), row.times, row.queries);
  }
  return title + table({{"Class"}, {"First result of class", "text"}, {"Queries"}, {"Of"}}, body);
}

}  // namespace

std::string metrics_section(const Report& report) {
  const std::vector<Row> rows = rows_of(report);
  std::string out = report.runs.size() > 1 ? two_runs(report, rows) : one_run(report, rows);
  const std::int64_t units = report.runs.front().intervals.units;
  if (units < 2) return out;
  out += fmt::format(
      "<p class=\"remark\">Intervals hold the metric over all such {0} in {1:g} % of test sets; "
      "from drawing the {2} {0} of this one again with replacement{3}.</p>\n",
      escaped(report.resampled), 100 * report.confidence, units,
      report.runs.size() > 1
          ? ", the same ones for both; one that holds 0 does not tell them apart. Another seed of "
            "the training may differ by more"
          : "");
  return out;
}

std::string classes_section(const Report& report) {
  std::vector<std::string> tables = {report.runs.size() > 1 ? changed_classes(report)
                                                            : hardest_classes(report)};
  for (const ReportedRun& run : report.runs) tables.push_back(confusions(report, run));
  return fmt::format("<div class=\"tables\">\n<div>{}</div>\n</div>\n",
                     fmt::join(tables, "</div>\n<div>"));
}

std::string settings_section(const Report& report) {
  if (report.runs.size() < 2) return "";
  const ReportedRun &a = report.runs[0], &b = report.runs[1];
  if (a.settings.empty() || b.settings.empty()) return "";
  std::string body;
  for (const DifferingFact& fact : differing_facts(a.settings, b.settings)) {
    body += fmt::format(
        "<tr><th scope=\"row\">{}</th><td class=\"text\">{}</td><td class=\"text\">{}</td></tr>\n",
        escaped(fact.name), escaped(shown_value(fact.first)), escaped(shown_value(fact.second)));
  }
  if (body.empty()) return "<p>Both runs were trained with the same settings.</p>\n";
  return table({{"Setting"}, {escaped(a.name), "text"}, {escaped(b.name), "text"}}, body);
}

}  // namespace rk
