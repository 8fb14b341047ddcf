#include "tools/eval/compare.h"

#include "engine/base/error.h"
#include "engine/base/note.h"
#include "engine/base/printable.h"
#include "retrieval/metric_text.h"
#include "tools/cli/cli.h"
#include "tools/cli/json_file.h"
#include "tools/cli/messages.h"
#include "tools/common/metrics_report.h"
#include "tools/eval/inputs/embed_data.h"
#include "tools/eval/write_report.h"
#include "weights/foreign/weight_files.h"
#include "weights/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>
#include <vector>

namespace rk {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string name_of(std::string run) {
  while (run.size() > 1 && run.ends_with('/')) run.pop_back();
  return run;
}

json difference_json(double a, double b, const Interval& interval) {
  return {{"value", b - a}, {"low", interval.low}, {"high", interval.high}};
}

struct Compared {
  std::string name;
  std::string key;  // as in metrics_json()
  double a, b;
  Interval difference;
};

std::vector<Compared> compared(const Metrics& a, const Metrics& b, const RankIntervals& all) {
  std::vector<Compared> rows;
  for (std::size_t i = 0; i < a.recall_at.size(); ++i) {
    rows.push_back({fmt::format("R@{}", a.recall_at[i]),
                    fmt::format("recall_at_{}", a.recall_at[i]), a.recall[i], b.recall[i],
                    all.recall[i]});
  }
  rows.push_back({"R-Precision", "r_precision", a.r_precision, b.r_precision, all.r_precision});
  rows.push_back({"MAP@R", "map_at_r", a.map_at_r, b.map_at_r, all.map_at_r});
  rows.push_back({"mAP", "map", a.map, b.map, all.map});
  return rows;
}

// What is told of a run beside its metrics.
struct RunRemarks {
  std::string provenance;  // of the images, as of DescribedRows
  json facts;
  std::vector<std::string> notes;
};

std::string told_apart(const Interval& difference) {
  if (!std::isfinite(difference.low)) return "no interval";
  return fmt::format("{} to {}   {}", text_of_difference(difference.low),
                     text_of_difference(difference.high),
                     difference.low > 0    ? "B is higher"
                     : difference.high < 0 ? "A is higher"
                                           : "not told apart");
}

void say_settings(const std::vector<DifferingFact>& settings) {
  if (settings.empty()) return;
  const std::string title = "Settings that differ";
  std::size_t names = title.size(), values = 0;
  for (const DifferingFact& each : settings) {
    names = std::max(names, each.name.size());
    values = std::max(values, one_line(shown_value(each.first)).size());
  }
  // Beside a value longer than this, that of B stands in the next line.
  values = std::min<std::size_t>(values, 36);
  print("\n  {:<{}}  {:<{}}  {}\n", title, names, "A", values, "B");
  const std::string next_line = fmt::format("\n{:<{}}", "", 2 + names + 2 + values + 2);
  for (const DifferingFact& each : settings) {
    const std::string first = one_line(shown_value(each.first));
    print("  {:<{}}  {:<{}}{}{}\n", each.name, names, first, values,
          first.size() > values ? next_line : "  ", one_line(shown_value(each.second)));
  }
}

void say(const std::string& what, const std::vector<ReportedRun>& runs,
         const std::vector<RunRemarks>& remarks, const std::vector<Compared>& rows,
         const std::vector<DifferingFact>& settings, double confidence,
         const std::string& resampled) {
  print("{}\n", one_line(what));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::string& provenance = remarks[i].provenance;
    print("{}: {}{}{}\n", i == 0 ? "A" : "B", one_line(runs[i].name),
          provenance.empty() ? "" : "; ", provenance);
  }
  print(
      "\nWhich of these two networks is better on such pictures. Another seed of either training "
      "may differ by more: compare losses over several (docs/metrics.md).\n");
  print("\n  {:<14}{:>10}{:>10}{:>10}   {:g} % interval of B - A, over {}\n", "", "A", "B", "B - A",
        100 * confidence, resampled);
  for (const Compared& row : rows) {
    print("  {:<14}{:>10}{:>10}{:>10}   {}\n", row.name, text_of_metric(row.a),
          text_of_metric(row.b), text_of_difference(row.b - row.a), told_apart(row.difference));
  }
  say_settings(settings);
  print("\nEach row is told apart by itself: of equally good networks, some row differs {}.\n",
        resampled == "classes" ? "in one of five comparisons"
                               : "far more often, since queries of one class are not "
                                 "independent (--resample classes)");
}

// The notes about two runs on the same pictures: what holds for both is told once.
std::vector<std::string> notes_of(const std::vector<ReportedRun>& runs,
                                  const std::vector<RunRemarks>& remarks) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const std::string& text : remarks[i].notes) {
      const bool both = std::ranges::count(remarks[1 - i].notes, text) > 0;
      if (!both) out.push_back(fmt::format("{}: {}", runs[i].name, text));
      if (both && i == 0) out.push_back(text);
    }
  }
  return out;
}

// Both runs on the same pictures: A, then B.
struct BothRuns {
  std::vector<ReportedRun> runs;
  std::vector<RunRemarks> remarks;
  std::vector<std::string> texts;     // of the pictures, as each network reads them
  std::vector<std::string> networks;  // their hashes
  EvaluatedRows rows;                 // those of B
};

BothRuns evaluate_both(const Context& context, const NetworkOptions& network,
                       const MeasureOptions& measures, const StatisticsOptions& statistics,
                       const std::vector<std::string>& names, const CommonOptions& common) {
  BothRuns out;
  for (const std::string& run : names) {
    NetworkOptions own = network;
    own.checkpoint = checkpoint_of_run(run);
    DescribedRows embedded = embed_data(context, own, nullptr, common);
    if (!out.runs.empty() && (embedded.set.labels != out.rows.queries.set.labels ||
                              embedded.set.paths != out.rows.queries.set.paths)) {
      fail<InputError>(
          "{}: has changed while it was read; leave it as it is until both runs have "
          "been evaluated",
          network.data);
    }
    out.rows.queries = std::move(embedded);
    const DescribedRows& rows = out.rows.queries;
    out.texts.push_back(rows.text);
    out.networks.push_back(rows.set.network);
    const Measured measured = measure(context, out.rows, measures, common);
    std::vector<std::string> notes = rows.notes;
    notes.insert(notes.end(), measured.notes.begin(), measured.notes.end());
    out.remarks.push_back({rows.provenance, rows.facts, std::move(notes)});
    out.runs.push_back(
        reported_run(context, name_of(run), own.checkpoint, out.rows, measured.metrics,
                     draw_intervals(context, rows, measured.metrics, statistics, common), common));
  }
  return out;
}

}  // namespace

std::string checkpoint_of_run(const std::string& run) {
  std::error_code ignored;
  if (!fs::is_directory(run, ignored)) return run;
  std::string best = (fs::path(run) / kBestFile).string();
  if (fs::exists(best, ignored)) return best;
  fail<InputError>(
      "{}: holds no {}; give the folder of a run that has finished an epoch, or a checkpoint", run,
      kBestFile);
}

void compare_runs(const Context& context, const NetworkOptions& network,
                  const MeasureOptions& measures, const StatisticsOptions& statistics,
                  const ReportOptions& options, const CommonOptions& common) {
  for (const std::string& run : options.compare) {
    std::vector<std::string> ignored;
    open_weights(checkpoint_of_run(run), network.arch, ignored);  // before any picture is read
  }
  MeasureOptions measuring = measures;
  measuring.per_query = true;
  BothRuns both = evaluate_both(context, network, measuring, statistics, options.compare, common);
  const Metrics &a = both.runs[0].metrics, &b = both.runs[1].metrics;
  const DescribedRows& pictures = both.rows.queries;
  const RankIntervals difference = difference_of(context, pictures, a, b, statistics, common);
  const std::vector<Compared> table = compared(a, b, difference);
  const bool alike = both.texts[0] == both.texts[1];
  const std::string data =
      alike ? both.texts[0] : fmt::format("A: {}; B: {}", both.texts[0], both.texts[1]);
  const std::vector<DifferingFact> settings =
      differing_facts(both.runs[0].settings, both.runs[1].settings);
  say(data, both.runs, both.remarks, table, settings, confidence_of(statistics),
      statistics.resample);
  std::vector<std::string> notes = notes_of(both.runs, both.remarks);
  if (!alike) {
    note(notes.emplace_back(
        fmt::format("the two networks read the pictures differently, each as it was trained to, so "
                    "part of the difference may be that of the pictures: {}",
                    data)));
  }
  if (both.networks[0] == both.networks[1]) {
    note(notes.emplace_back("A and B are the same network, so that nothing can differ"));
  }
  const std::string few = remark_on_few(difference, statistics.resample);
  if (!few.empty()) note(notes.emplace_back(few));
  json result = {{"data", network.data},
                 {"split", network.split},
                 {"skipped_images", pictures.skipped_images},
                 {"protocol", protocol_text(a)},
                 {"notes", notes},
                 {"confidence", confidence_of(statistics)},
                 {"resampled", statistics.resample},
                 {"resamples", difference.resamples},
                 {"units", difference.units}};
  for (std::size_t i = 0; i < both.runs.size(); ++i) {
    Metrics metrics = both.runs[i].metrics;
    if (!measures.per_query) metrics.per_query = {};
    json run = both.remarks[i].facts;
    run.update({{"run", both.runs[i].name}, {"metrics", metrics_json(metrics)}});
    result["runs"].push_back(std::move(run));
  }
  for (const Compared& row : table) {
    result["difference"][row.key] = difference_json(row.a, row.b, row.difference);
  }
  for (const DifferingFact& each : settings) {
    result["settings"][each.name] = {{"a", each.first}, {"b", each.second}};
  }
  if (!options.report.empty()) {
    const std::string title = fmt::format("{} and {}", both.runs[0].name, both.runs[1].name);
    write_report(context,
                 {.path = options.report,
                  .title = title,
                  .data = data,
                  .rows = both.rows,
                  .statistics = statistics,
                  .notes = std::move(notes),
                  .runs = std::move(both.runs),
                  .difference = difference},
                 common);
  }
  write_result(common, context.threads(), std::move(result));
}

}  // namespace rk
