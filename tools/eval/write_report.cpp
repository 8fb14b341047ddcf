#include "tools/eval/write_report.h"

#include "data/images/exif.h"
#include "engine/base/english.h"
#include "engine/base/error.h"
#include "retrieval/files/mapped_file.h"
#include "tools/cli/build_commit.h"
#include "tools/cli/messages.h"
#include "tools/cli/parse_json.h"
#include "tools/common/metrics_report.h"
#include "tools/eval/learning_record.h"
#include "tools/eval/neighbours.h"
#include "weights/atomic_file.h"
#include "weights/checkpoint.h"
#include "weights/sealed_file.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <span>

namespace rk {
namespace {

// The number of results that the report shows per query.
constexpr std::int64_t kNeighbours = 8;

void add_run_facts(const Checkpoint& checkpoint, ReportFacts& facts) {
  const ModelDescription& model = checkpoint.model();
  facts.emplace_back("Network", fmt::format("{}, {} pooling, {} numbers, images of {} pixels",
                                            model.arch, model.pool, model.dim, model.crop));
  facts.emplace_back("SHA-256 of the checkpoint", checkpoint.sha256());
  facts.emplace_back("SHA-256 of the network", checkpoint.network());
  if (!checkpoint.has_run()) return;
  const RunState& run = checkpoint.run();
  facts.emplace_back("Trained",
                     fmt::format("{}, {}", counted(run.epoch, "epoch"), counted(run.step, "step")));
  facts.emplace_back("Training data", run.data);
  if (!run.held_out.empty()) facts.emplace_back("Held out", run.held_out);
  if (!run.environment.empty()) facts.emplace_back("Trained by", run.environment);
  try {
    const auto settings = parse_json(run.settings, checkpoint.path());
    for (const auto& [name, value] : settings.items()) {
      facts.emplace_back(name, value.is_string() ? value.get<std::string>() : value.dump());
    }
  } catch (const InputError&) {
    facts.emplace_back("Settings", "damaged");
  }
}

// Why the pictures of rows from a file cannot be shown; empty: one of some rows is there. Single
// pictures that cannot be read are told where they are shown.
std::string why_no_pictures(const DescribedRows& rows) {
  if (rows.picture) return "";
  if (rows.set.paths.empty()) return fmt::format("{} does not say where they are", rows.name);
  constexpr std::int64_t kTried = 16;
  for (std::int64_t i = 0; i < std::min(kTried, rows.count()); ++i) {
    const std::int64_t row = i * rows.count() / std::min(kTried, rows.count());
    std::error_code ignored;
    if (std::filesystem::is_regular_file(picture_path(rows, row), ignored)) return "";
  }
  return fmt::format("{} is not where {} says it is", rows.set.paths.front(), rows.name);
}

Image picture_of(const DescribedRows& rows, std::int64_t row) {
  if (rows.picture) return rows.picture(row);
  const std::string path = picture_path(rows, row);
  return read_photo(path, rows.set.exif == "turn").image;  // as embedded
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
                  .facts = {}};
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
  run.record = read_learning_record(network);
  add_run_facts(network, run.facts);
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
  report.no_pictures = why_no_pictures(queries);
  if (report.no_pictures.empty() && gallery) report.no_pictures = why_no_pictures(*gallery);
  if (report.no_pictures.empty()) {
    report.picture = [&](bool of_gallery, std::int64_t row) {
      return picture_of(of_gallery ? *gallery : queries, row);
    };
  }
  report.facts = {
      {"Command", common.command_line},
      {"Version", fmt::format("Rankine {}{}{}", RK_VERSION,
                              build_commit().empty() ? "" : ", commit ", build_commit())},
      {"Machine", context.describe()},
      {"Date", fmt::format("{:%F %T} UTC", fmt::gmtime(std::time(nullptr)))}};
  const std::string page = report_page(report);
  check_mapped_files();  // the search for the report has read the rows once more
  write_atomic(file.path, page);
  if (!common.quiet) tell("report: {}, {} KB; open it in a browser", file.path, page.size() / 1000);
}

}  // namespace rk
