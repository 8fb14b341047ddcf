#include "tools/eval/write_report.h"

#include "engine/base/english.h"
#include "engine/base/error.h"
#include "retrieval/files/mapped_file.h"
#include "tools/common/metrics_report.h"
#include "tools/common/row_lengths.h"
#include "tools/common/stored_settings.h"
#include "tools/eval/learning_record.h"
#include "tools/eval/neighbours.h"
#include "tools/eval/row_pictures.h"
#include "tools/eval/write_page.h"
#include "weights/checkpoint.h"
#include "weights/sealed_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace rk {
namespace {

// The number of results that the report shows per query.
constexpr std::int64_t kNeighbours = 8;

// What the network was trained with.
ReportFacts training_settings(const Checkpoint& checkpoint) {
  const ModelDescription& model = checkpoint.model();
  ReportFacts facts = {{"Network", fmt::format("{}, {} pooling, {} numbers, images of {} pixels",
                                               model.arch, model.pool, model.dim, model.crop)}};
  if (!checkpoint.has_run()) return facts;
  const RunState& run = checkpoint.run();
  facts.emplace_back("Trained",
                     fmt::format("{}, {}", counted(run.epoch, "epoch"), counted(run.step, "step")));
  facts.emplace_back("Training data", run.data);
  if (!run.held_out.empty()) facts.emplace_back("Held out", run.held_out);
  if (!run.environment.empty()) facts.emplace_back("Trained by", run.environment);
  try {
    const auto settings = stored_settings(checkpoint);
    for (const auto& [name, value] : settings.items()) {
      facts.emplace_back(name, value.is_string() ? value.get<std::string>() : value.dump());
    }
  } catch (const InputError&) {
    facts.emplace_back("Settings", "damaged");
  }
  return facts;
}

// Whether scores of the rows leave [-1, 1] by more than rounding.
bool has_long_rows(const DescribedRows& rows) {
  return row_lengths(rows.set.values(), rows.set.dim).beyond_one();
}

}  // namespace

ReportedRun reported_run(const Context& context, const std::string& name,
                         const std::string& checkpoint, const EvaluatedRows& rows,
                         const Metrics& metrics, const RankIntervals& intervals,
                         const CommonOptions& common) {
  // Ties are ordered as in the metrics, which are shown beside these.
  Neighbours neighbours = find_neighbours(
      context, rows,
      {.topk = kNeighbours, .ties = Ties::kOwnClassLast, .label = "searching for the report"},
      common);
  ReportedRun run{.name = name,
                  .metrics = metrics,
                  .intervals = intervals,
                  .neighbours = std::move(neighbours),
                  .record = std::nullopt,
                  .facts = {},
                  .rows_beyond_one = has_long_rows(rows.queries) ||
                                     (rows.gallery && has_long_rows(*rows.gallery))};
  if (checkpoint.empty()) {
    if (!rows.queries.set.network.empty()) {
      run.facts.emplace_back("SHA-256 of the network", rows.queries.set.network);
    }
    return run;
  }
  run.facts.emplace_back("File", checkpoint);
  if (!rows.queries.provenance.empty()) {
    run.facts.emplace_back("Evaluated images", rows.queries.provenance);
  }
  if (!is_sealed(checkpoint)) return run;  // foreign weights
  const Checkpoint network(checkpoint);
  run.facts.emplace_back("SHA-256 of the checkpoint", network.sha256());
  run.facts.emplace_back("SHA-256 of the network", network.network());
  run.settings = training_settings(network);
  run.record = read_learning_record(network);
  return run;
}

void write_report(const Context& context, ReportFile file, const CommonOptions& common) {
  Report report;
  report.title = std::move(file.title);
  report.data = std::move(file.data);
  const Metrics& metrics = file.runs.front().metrics;
  report.protocol =
      fmt::format("{}: {}", file.protocol.empty() ? protocol_name(metrics) : file.protocol,
                  protocol_text(metrics));
  report.notes = std::move(file.notes);
  const DescribedRows& queries = file.rows.queries;
  const std::optional<DescribedRows>& gallery = file.rows.gallery;
  report.queries = &queries.set;
  report.gallery = gallery ? &gallery->set : nullptr;
  report.runs = std::move(file.runs);
  report.difference = file.difference;
  report.confidence = confidence_of(file.statistics);
  report.resampled = file.statistics.resample;
  RowPictures pictures = pictures_of(file.rows);
  report.picture = std::move(pictures.picture);
  report.no_pictures = std::move(pictures.none);
  report.scores_leave_range = std::ranges::any_of(report.runs, &ReportedRun::rows_beyond_one);
  if (file.of_networks) report.no_training = "no metrics.jsonl of a run lies beside the network";
  report.facts = page_facts(context, common);
  const std::string page = report_page(report);
  check_mapped_files();  // the search for the report has read the rows once more
  write_page(file.path, page, common);
}

}  // namespace rk
