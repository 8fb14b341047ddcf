#include "tools/eval/eval_command.h"

#include "data/sources/open_dataset.h"
#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/note.h"
#include "retrieval/files/array_file.h"
#include "retrieval/files/embeddings_file.h"
#include "retrieval/files/mapped_file.h"
#include "tools/cli/flags/precision_on_cpu.h"
#include "tools/cli/json_file.h"
#include "tools/cli/messages.h"
#include "tools/cli/output_files.h"
#include "tools/common/metrics_report.h"
#include "tools/eval/compare.h"
#include "tools/eval/inputs/file_options.h"
#include "tools/eval/inputs/network_options.h"
#include "tools/eval/inputs/read_or_embed.h"
#include "tools/eval/measure.h"
#include "tools/eval/neighbours.h"
#include "tools/eval/protocol_options.h"
#include "tools/eval/report_options.h"
#include "tools/eval/search.h"
#include "tools/eval/statistics.h"
#include "tools/eval/write_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <new>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace rk {
namespace {

class Eval final : public Command {
 public:
  void add_options(Flags& flags) override {
    files_.add_to(flags);
    network_.add_to(flags);
    measures_.add_to(flags);
    protocol_.add_to(flags);
    statistics_.add_to(flags);
    neighbours_.add_to(flags);
    search_.add_to(flags);
    report_.add_to(flags);
    flags_ = flags;
  }

  bool runs_on_cuda() const override { return true; }
  const char* less_memory() const override { return "--batch"; }
  const char* verbose_help() const override { return "also what time, memory and work it took"; }

  void run(const CommonOptions& common) override {
    check(common);
    measures_.sort_recalls();
    const Device device = device_of(common);
    refuse_precision_without_gpu(device, network_.precision);
    const Context context(common.threads, device);
    if (!search_.index.empty()) {
      search(context, search_, network_, neighbours_, report_.report, common);
      return;
    }
    if (compares()) {
      compare(context, {files_, network_, measures_, statistics_, report_}, common);
      return;
    }
    EvaluatedRows rows = read_or_embed(context, files_.of(files_.embeddings), network_, common);
    protocol_.check_cameras(rows);
    const DescribedRows& queries = rows.queries;
    if (rows.gallery) match_gallery(queries, *rows.gallery);
    const RowsDescription described = describe(rows);
    check_statistics(context, rows, statistics_);
    // Nothing is written until everything that can be refused has been checked.
    if (!network_.save.empty() || !neighbours_.save.empty()) {
      check_scores(context, rows);
    }
    if (!network_.save.empty()) {
      write_embeddings(network_.save, queries.set);
      if (!common.quiet) {
        tell("{}: {} of {}", network_.save, counted(queries.count(), "row"),
             queries.part.empty() ? files_.embeddings : queries.part);
      }
    }
    MeasureOptions measures = measures_;
    protocol_.choose(measures);
    if (protocol_.draws()) rows.queries.set.cameras.clear();  // also for --save-neighbours
    save_neighbours(context, rows, common);
    nlohmann::json json = described.facts;
    json["notes"] = described.notes;
    if (protocol_.draws()) {
      measure_draws(context, rows, described.text, protocol_, measures, common, json);
    } else {
      measures.per_query |= statistics_.need_per_query() || !report_.report.empty();
      measure_all(context, rows, described, measures, common, json);
    }
    add_origin(json);
    json["seed"] = common.seed;
    json["skipped_images"] = rows.skipped_images();
    write_result(common, context.threads(), std::move(json));
  }

 private:
  bool embeds() const { return !network_.checkpoint.empty(); }
  bool compares() const { return !report_.compare.empty(); }
  bool compares_files() const { return compares() && network_.data.empty(); }

  void check(const CommonOptions& common) const {
    const bool searches = !search_.index.empty();
    if (searches) check_search();
    refuse_without_network();
    for (const auto& [flag, file, of_pictures] :
         {std::tuple{"--labels", &files_.labels, "have the classes of --data"},
          {"--cameras", &files_.cameras, "have none here"}}) {
      if (file->empty() || !files_.embeddings.empty() || compares_files()) continue;
      fail<UsageError>(
          "{} {}: are those of --embeddings, or of two files to --compare; pictures {}", flag,
          *file, of_pictures);
    }
    if (compares()) {
      check_comparison();
    } else if (files_.embeddings.empty() != embeds()) {
      fail<UsageError>("give either --embeddings FILE or --checkpoint FILE with --data SPEC");
    }
    if (!compares() && files_.galleries.size() > 1) {
      fail<UsageError>("--gallery {}: give one file", fmt::join(files_.galleries, " "));
    }
    check_gallery_split();
    if (!compares() && !searches) {
      protocol_.check(!files_.galleries.empty() || !network_.gallery_split.empty(), embeds());
    }
    if (files_.normalize && files_.embeddings.empty() && !compares_files() &&
        files_.galleries.empty()) {
      fail<UsageError>("--normalize: is for --embeddings and --gallery; leave it out");
    }
    std::vector<std::string> inputs = files_.files();
    inputs.insert(inputs.end(), search_.queries.begin(), search_.queries.end());
    inputs.insert(inputs.end(), {network_.checkpoint, search_.index});
    if (!network_.data.empty()) inputs.push_back(read_data_spec(network_.data).path);
    for (const std::string& each : report_.compare) {
      inputs.push_back(compares_files() ? file_and_name(each).file : checkpoint_of_run(each));
    }
    check_outputs({{"--save-embeddings", network_.save, FileKind::kEmbeddings},
                   {"--save-neighbours", neighbours_.save, FileKind::kNeighbours},
                   {"--report", report_.report, FileKind::kReport},
                   {"--json", common.json, FileKind::kJson}},
                  inputs, common.force);
    if (searches) {
      note_unused_with("--index",
                       {"--split", "--normalize", "--recall-at", "--per-query", "--protocol",
                        "--confidence", "--resample", "--per-class", "--curves", "--nmi"});
      return;
    }
    if (compares()) {
      note_unused_with("--compare", {"--per-class", "--curves", "--nmi"});
    }
    if (protocol_.draws() &&
        (statistics_.given() || measures_.per_query || !report_.report.empty())) {
      fail<UsageError>(
          "--protocol {}: has R@k and mAP of drawn galleries alone; leave --confidence, "
          "--per-class, --per-query, --curves, --nmi and --report out",
          protocol_.name);
    }
    const auto note_unused = [](bool unused, const char* flag, const char* needs) {
      if (unused) note(fmt::format("{}: has no effect without {}", flag, needs));
    };
    const bool intervals = statistics_.confidence > 0 || compares() || !report_.report.empty();
    note_unused((*flags_)["--resample"].given() && !intervals, "--resample",
                "--confidence, --report or --compare");
    note_unused(measures_.per_query && common.json.empty(), "--per-query", "--json");
    note_unused(statistics_.curves && common.json.empty(), "--curves", "--json");
    note_unused((*flags_)["--topk"].given() && neighbours_.save.empty(), "--topk",
                "--save-neighbours or --index");
  }

  void refuse_without_network() const {
    if (embeds() || (compares() && !compares_files())) return;
    for (const char* name : {"--data", "--split", "--gallery-split", "--batch", "--workers",
                             "--precision", "--skip-bad"}) {
      if (!(*flags_)[name].given()) continue;
      fail<UsageError>(
          "{}: is for pictures that a network embeds; give --checkpoint RUN/best.h5, or --compare "
          "RUN_A RUN_B --data SPEC",
          name);
    }
  }

  void check_gallery_split() const {
    if (network_.gallery_split.empty()) return;
    if (!files_.galleries.empty()) {
      fail<UsageError>("--gallery-split {}: --gallery names another gallery; leave one out",
                       network_.gallery_split);
    }
    if (parse_split(network_.gallery_split) == parse_split(network_.split)) {
      fail<UsageError>(
          "--gallery-split {}: is --split too, so that every picture would find itself; leave it "
          "out to search among the others",
          network_.gallery_split);
    }
  }

  void note_unused_with(const char* mode, std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      if ((*flags_)[name].given()) note(fmt::format("{}: has no effect with {}", name, mode));
    }
  }

  // Refuses flags for measuring together with --index.
  void check_search() const {
    if (!embeds()) fail<UsageError>("--index {}: --checkpoint is missing", search_.index);
    for (const auto& [flag, value] :
         {std::pair{"--data", network_.data},
          std::pair{"--gallery", fmt::format("{}", fmt::join(files_.galleries, " "))},
          std::pair{"--gallery-split", network_.gallery_split},
          std::pair{"--save-embeddings", network_.save}}) {
      if (value.empty()) continue;
      fail<UsageError>("{} {}: --index looks up pictures of --query alone; leave it out", flag,
                       value);
    }
  }

  void save_neighbours(const Context& context, const EvaluatedRows& rows,
                       const CommonOptions& common) const {
    if (neighbours_.save.empty()) return;
    // A single row has no candidate; the file then has one column of none.
    const std::int64_t most = std::max<std::int64_t>(1, rows.candidates());
    const std::int64_t topk = std::min(neighbours_.topk, most);
    const std::string what =
        fmt::format("{} of {}", counted(topk, "neighbour"), counted(rows.queries.count(), "row"));
    try {
      const Neighbours found = find_neighbours(context, rows, {.topk = topk}, common);
      check_mapped_files();
      write_neighbours(neighbours_.save, found);
    } catch (const std::bad_alloc&) {
      fail<DeviceError>(
          "--save-neighbours: out of memory for {}; give a smaller --topk, end what else runs "
          "here, or raise the limit (ulimit -v)",
          what);
    }
    if (!common.quiet) tell("{}: {}", neighbours_.save, what);
  }

  void check_comparison() const {
    const std::string both = fmt::format("{}", fmt::join(report_.compare, " "));
    if (report_.compare.size() != 2) {
      fail<UsageError>("--compare {}: give two runs, or two files of embeddings", both);
    }
    if (embeds() || !files_.embeddings.empty()) {
      fail<UsageError>(
          "--compare: names what is evaluated; leave --checkpoint and --embeddings out");
    }
    if (compares_files() && std::ranges::any_of(report_.compare, is_run)) {
      fail<UsageError>("--compare {}: --data is missing; for example --data folder:photos", both);
    }
    if (files_.galleries.size() == 1) {
      fail<UsageError>(
          "--gallery {}: each of the two is searched for in a gallery of its own embeddings; give "
          "two files, --gallery GALLERY_A GALLERY_B",
          files_.galleries[0]);
    }
    if (files_.galleries.size() > 2) {
      fail<UsageError>("--gallery {}: give two files, A's and B's",
                       fmt::join(files_.galleries, " "));
    }
    for (const auto& [flag, value] : {std::pair{"--save-embeddings", &network_.save},
                                      std::pair{"--save-neighbours", &neighbours_.save}}) {
      if (value->empty()) continue;
      fail<UsageError>("{} {}: of which of the two? Leave it out, and evaluate one alone", flag,
                       *value);
    }
    if (!protocol_.name.empty()) {
      fail<UsageError>(
          "--protocol {}: is for one evaluation; with --compare, --recall-at names "
          "the k",
          protocol_.name);
    }
  }

  void report(const Context& context, const EvaluatedRows& rows, const std::string& what,
              const Measured& measured, const RankIntervals& intervals,
              const Statistics& statistics, const CommonOptions& common) const {
    const std::string& name = embeds() ? network_.checkpoint : files_.embeddings;
    ReportFile file{.path = report_.report,
                    .title = fmt::format("Retrieval by {}", name),
                    .protocol = protocol_.name,
                    .data = what,
                    .rows = rows,
                    .statistics = statistics_,
                    .notes = measured.notes,
                    .of_networks = embeds()};
    file.runs.push_back(reported_run(context, name, network_.checkpoint, rows, measured.metrics,
                                     intervals, common));
    if (statistics.clustering) file.runs.back().nmi = statistics.nmi;
    write_report(context, std::move(file), common);
  }

  void measure_all(const Context& context, const EvaluatedRows& rows,
                   const RowsDescription& described, const MeasureOptions& measures,
                   const CommonOptions& common, nlohmann::json& json) const {
    Measured measured = measure(context, rows, measures, common);
    measured.notes.insert(measured.notes.begin(), described.notes.begin(), described.notes.end());
    std::optional<RankIntervals> intervals;
    if (statistics_.confidence > 0 || !report_.report.empty()) {
      intervals = draw_intervals(context, rows.queries, measured.metrics, statistics_, common);
      const std::string few = remark_on_few(*intervals, statistics_.resample);
      if (!few.empty()) note(measured.notes.emplace_back(few));
      const std::string ends = remark_on_ends(*intervals, statistics_.resample);
      if (!ends.empty()) note(measured.notes.emplace_back(ends));
    }
    const Statistics statistics =
        take_statistics(context, rows, measured.metrics, intervals, statistics_, common);
    // Before any result is printed: refuses results of mapped files whose pages were gone when
    // read.
    check_mapped_files();
    say(described.text, rows.queries, measured, statistics, common);
    if (!report_.report.empty())
      report(context, rows, described.text, measured, *intervals, statistics, common);
    if (common.json.empty()) return;
    Metrics& metrics = measured.metrics;
    if (!measures_.per_query) metrics.per_query = {};
    json.update(
        {{"protocol", protocol_text(metrics)},
         {"protocol_name", protocol_.name.empty() ? protocol_name(metrics) : protocol_.name},
         {"metrics", metrics_json(metrics)},
         {"notes", measured.notes},
         {"seconds", measured.seconds},
         {"bytes_reserved", metrics.bytes_reserved}});
    add_statistics(statistics, rows.queries, metrics, statistics_, json);
  }

  void say(const std::string& what, const DescribedRows& queries, const Measured& measured,
           const Statistics& statistics, const CommonOptions& common) const {
    const Metrics& metrics = measured.metrics;
    print("{}{}",
          metrics_table(what, metrics, protocol_.name,
                        statistics.intervals ? &*statistics.intervals : nullptr),
          statistics_text(statistics, queries));
    if (!common.verbose) return;
    print("\n{:.2f} s, {:.1f} MiB beside the embeddings, {:.0f} GFLOP in tiles{}\n",
          measured.seconds, static_cast<double>(metrics.bytes_reserved) / (1 << 20),
          static_cast<double>(metrics.gemm_flops) * 1e-9,
          metrics.symmetric ? " (half of S = S^T)" : "");
  }

  void add_origin(nlohmann::json& json) const {
    json.update({{"embeddings", files_.embeddings},
                 {"checkpoint", network_.checkpoint},
                 {"data", network_.data},
                 {"split", embeds() ? network_.split : ""},
                 {"gallery_split", network_.gallery_split},
                 {"gallery", files_.galleries.empty() ? "" : files_.galleries[0]}});
  }

  FileOptions files_;
  NetworkOptions network_;
  MeasureOptions measures_;
  ProtocolOptions protocol_;
  StatisticsOptions statistics_;
  NeighbourOptions neighbours_;
  SearchOptions search_;
  ReportOptions report_;
  std::optional<Flags> flags_;
};

}  // namespace

std::unique_ptr<Command> make_eval() { return std::make_unique<Eval>(); }

}  // namespace rk
