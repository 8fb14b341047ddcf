#include "tools/eval/compare.h"

#include "engine/base/error.h"
#include "engine/base/note.h"
#include "engine/base/printable.h"
#include "retrieval/files/array_file.h"
#include "retrieval/files/mapped_file.h"
#include "retrieval/metric_text.h"
#include "tools/cli/cli.h"
#include "tools/cli/json_file.h"
#include "tools/cli/messages.h"
#include "tools/common/metrics_report.h"
#include "tools/eval/inputs/read_or_embed.h"
#include "tools/eval/same_rows.h"
#include "tools/eval/write_report.h"
#include "weights/foreign/weight_files.h"
#include "weights/run_folder.h"
#include "weights/sealed_file.h"

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
  std::string pictures;    // as its network reads them; of a file: what it holds
  std::string text;        // the same, and what they are searched in
  std::string provenance;  // of the images, as of DescribedRows
  std::string network;     // its hash; of files: empty
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

// Says what is compared: the pictures and both runs, or both files.
void say_both(const std::string& pictures, const std::vector<ReportedRun>& runs,
              const std::vector<RunRemarks>& remarks, bool of_networks) {
  if (of_networks) print("{}\n", one_line(pictures));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::string& provenance = remarks[i].provenance;
    print("{}: {}{}{}\n", i == 0 ? "A" : "B",
          one_line(of_networks ? runs[i].name : remarks[i].text), provenance.empty() ? "" : "; ",
          provenance);
  }
  print("{}", queries_text(runs.back().metrics));
  print(
      "\nWhich of these two {} is better on such pictures. Another seed of either training may "
      "differ by more: compare losses over several (docs/metrics.md).\n",
      of_networks ? "networks" : "sets of embeddings");
}

void say_difference(const std::vector<Compared>& rows, const std::vector<DifferingFact>& settings,
                    double confidence, const std::string& resampled) {
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
      const bool named = text.starts_with(runs[i].name + ":");  // rows of a file name it
      if (!both) out.push_back(named ? text : fmt::format("{}: {}", runs[i].name, text));
      if (both && i == 0) out.push_back(text);
    }
  }
  return out;
}

// Both runs on the same pictures: A, then B.
struct BothRuns {
  std::vector<ReportedRun> runs;
  std::vector<RunRemarks> remarks;
  EvaluatedRows rows;  // those of B
};

// The rows of the first or second that is compared.
EvaluatedRows rows_of(const Context& context, const CompareOptions& options, std::size_t which,
                      const CommonOptions& common) {
  const std::string& name = options.report.compare[which];
  NetworkOptions network = options.network;
  RowFiles files = options.files.of("", which);
  if (network.data.empty()) {
    files.embeddings = name;
  } else {
    network.checkpoint = checkpoint_of_run(name);
  }
  EvaluatedRows rows = read_or_embed(context, files, network, common);
  if (rows.gallery) match_gallery(rows.queries, *rows.gallery);
  return rows;
}

BothRuns evaluate_both(const Context& context, const CompareOptions& options,
                       const MeasureOptions& measures, const CommonOptions& common) {
  const std::string& data = options.network.data;
  BothRuns out;
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string& name = options.report.compare[i];
    EvaluatedRows rows = rows_of(context, options, i, common);
    if (i == 1) {
      const EmbeddingSet &a = out.rows.queries.set, &b = rows.queries.set;
      if (!data.empty() && (a.labels != b.labels || a.paths != b.paths)) {
        fail<InputError>(
            "{}: has changed while it was read; leave it as it is until both runs have been "
            "evaluated",
            data);
      }
      check_same_rows(out.rows, rows);
    }
    out.rows = std::move(rows);
    const DescribedRows& queries = out.rows.queries;
    RowsDescription described = describe(out.rows);
    const Measured measured = measure(context, out.rows, measures, common);
    std::vector<std::string>& notes = described.notes;
    notes.insert(notes.end(), measured.notes.begin(), measured.notes.end());
    out.remarks.push_back({queries.text, queries.text + described.gallery, queries.provenance,
                           data.empty() ? "" : queries.set.network, std::move(described.facts),
                           std::move(notes)});
    out.runs.push_back(reported_run(
        context, name_of(name), data.empty() ? "" : checkpoint_of_run(name), out.rows,
        measured.metrics,
        draw_intervals(context, queries, measured.metrics, options.statistics, common), common));
  }
  return out;
}

// Why A and B cannot differ; empty: they can.
std::string remark_on_sameness(const BothRuns& both, const std::vector<std::string>& names) {
  const std::string& network = both.remarks[0].network;
  if (!network.empty() && network == both.remarks[1].network) {
    return "A and B are the same network, so that nothing can differ";
  }
  const FileAndName a = file_and_name(names[0]), b = file_and_name(names[1]);
  std::error_code ignored;
  if (network.empty() && a.name == b.name && fs::equivalent(a.file, b.file, ignored)) {
    return "A and B are the same file, so that nothing can differ";
  }
  return "";
}

json comparison_json(const CompareOptions& options, const CommonOptions& common,
                     const BothRuns& both, const RankIntervals& difference,
                     const std::vector<Compared>& table,
                     const std::vector<DifferingFact>& settings) {
  const NetworkOptions& network = options.network;
  json result = {{"data", network.data},
                 {"split", network.data.empty() ? "" : network.split},
                 {"gallery_split", network.gallery_split},
                 {"seed", common.seed},
                 {"skipped_images", both.rows.skipped_images()},
                 {"protocol", protocol_text(both.runs[0].metrics)},
                 {"confidence", confidence_of(options.statistics)},
                 {"resampled", options.statistics.resample},
                 {"resamples", difference.resamples},
                 {"units", difference.units}};
  for (std::size_t i = 0; i < both.runs.size(); ++i) {
    Metrics metrics = both.runs[i].metrics;
    if (!options.measures.per_query) metrics.per_query = {};
    json run = both.remarks[i].facts;
    run.update({{"run", both.runs[i].name},
                {"gallery", options.files.of("", i).gallery},
                {"metrics", metrics_json(metrics)}});
    result["runs"].push_back(std::move(run));
  }
  for (const Compared& row : table) {
    result["difference"][row.key] = difference_json(row.a, row.b, row.difference);
  }
  for (const DifferingFact& each : settings) {
    result["settings"][each.name] = {{"a", each.first}, {"b", each.second}};
  }
  return result;
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

bool is_run(const std::string& name) {
  std::error_code ignored;
  return fs::is_directory(name, ignored) || is_sealed(name);
}

void compare(const Context& context, const CompareOptions& options, const CommonOptions& common) {
  const StatisticsOptions& statistics = options.statistics;
  const bool of_networks = !options.network.data.empty();
  if (of_networks) {
    for (const std::string& run : options.report.compare) {
      std::vector<std::string> ignored;
      // Before any picture is read.
      open_weights(checkpoint_of_run(run), options.network.arch, ignored);
    }
  }
  MeasureOptions measures = options.measures;
  measures.per_query = true;
  BothRuns both = evaluate_both(context, options, measures, common);
  const Metrics &a = both.runs[0].metrics, &b = both.runs[1].metrics;
  const DescribedRows& pictures = both.rows.queries;
  const RankIntervals difference = difference_of(context, pictures, a, b, statistics, common);
  const std::vector<Compared> table = compared(a, b, difference);
  const RunRemarks &of_a = both.remarks[0], &of_b = both.remarks[1];
  const std::string data =
      of_a.text == of_b.text ? of_a.text : fmt::format("A: {}; B: {}", of_a.text, of_b.text);
  const std::vector<DifferingFact> settings =
      differing_facts(both.runs[0].settings, both.runs[1].settings);
  check_mapped_files();  // before any result of them is printed
  say_both(data, both.runs, both.remarks, of_networks);
  say_difference(table, settings, confidence_of(statistics), statistics.resample);
  std::vector<std::string> notes = notes_of(both.runs, both.remarks);
  if (of_networks && of_a.pictures != of_b.pictures) {
    note(notes.emplace_back(
        fmt::format("the two networks read the pictures differently, each as it was trained to, so "
                    "part of the difference may be that of the pictures: {}",
                    data)));
  }
  const std::string same = remark_on_sameness(both, options.report.compare);
  if (!same.empty()) note(notes.emplace_back(same));
  const std::string few = remark_on_few(difference, statistics.resample);
  if (!few.empty()) note(notes.emplace_back(few));
  json result = comparison_json(options, common, both, difference, table, settings);
  result["notes"] = notes;
  if (!options.report.report.empty()) {
    const std::string title = fmt::format("{} and {}", both.runs[0].name, both.runs[1].name);
    write_report(context,
                 {.path = options.report.report,
                  .title = title,
                  .data = data,
                  .rows = both.rows,
                  .statistics = statistics,
                  .notes = std::move(notes),
                  .runs = std::move(both.runs),
                  .difference = difference,
                  .of_networks = of_networks},
                 common);
  }
  write_result(common, context.threads(), std::move(result));
}

}  // namespace rk
