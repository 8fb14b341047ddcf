#include "tools/eval_command.h"

#include "engine/error.h"
#include "retrieval/embeddings_file.h"
#include "retrieval/evaluate.h"
#include "tools/json_file.h"
#include "tools/metrics_report.h"
#include "tools/progress.h"
#include "tools/signals.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>

namespace rk {
namespace {

class Eval final : public Command {
 public:
  void add_options(CLI::App& app) override {
    app.add_option("--embeddings", embeddings_, "HDF5 file with /embeddings and /labels")
        ->required()
        ->type_name("FILE");
    app.add_option("--gallery", gallery_,
                   "search in this file instead of among the embeddings themselves")
        ->type_name("FILE");
    app.add_option("--recall-at", recall_at_, "the k of R@k")
        ->check(CLI::PositiveNumber)
        ->delimiter(',');
    app.add_flag("--per-query", per_query_, "add every query's values to the JSON");
  }

  void run(const CommonOptions& common) override {
    const EmbeddingSet queries = read_embeddings(embeddings_);
    std::optional<EmbeddingSet> gallery;
    if (!gallery_.empty()) {
      gallery = read_embeddings(gallery_);
      check_same_space(queries, embeddings_, *gallery, gallery_);
    }
    const Context context(common.threads);
    EvaluateOptions options;
    options.recall_at = recall_at_;
    options.per_query = per_query_;
    options.interrupted = interrupted;
    Progress progress("ranking", queries.count(), "queries", common.quiet);
    options.progress = [&](double done) {
      progress.update(static_cast<std::int64_t>(done * static_cast<double>(queries.count())));
    };

    const auto start = std::chrono::steady_clock::now();
    std::optional<EmbeddingView> gallery_view;
    if (gallery) gallery_view = gallery->view();
    const std::optional<Metrics> metrics = evaluate(
        context, queries.view(), gallery_view ? &*gallery_view : nullptr, options);
    progress.finish();
    if (!metrics) stop_if_interrupted();
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

    const std::string what = gallery ? embeddings_ + " in " + gallery_ : embeddings_;
    fmt::print("{}", metrics_table(what, *metrics));
    if (common.verbose) {
      fmt::print("\n{:.2f} s, {:.1f} MiB beside the embeddings, {:.0f} GFLOP in tiles{}\n", seconds,
                 static_cast<double>(metrics->bytes_reserved) / (1 << 20),
                 static_cast<double>(metrics->gemm_flops) * 1e-9,
                 metrics->symmetric ? " (half of S = S^T)" : "");
    }
    if (common.json.empty()) return;
    write_json(common.json, {{"embeddings", embeddings_},
                             {"gallery", gallery_},
                             {"protocol", protocol_text(*metrics)},
                             {"metrics", metrics_json(*metrics)},
                             {"seconds", seconds},
                             {"bytes_reserved", metrics->bytes_reserved},
                             {"device", common.device},
                             {"threads", context.threads()},
                             {"version", RK_VERSION}});
  }

 private:
  std::string embeddings_;
  std::string gallery_;
  std::vector<std::int64_t> recall_at_ = EvaluateOptions{}.recall_at;
  bool per_query_ = false;
};

}  // namespace

std::unique_ptr<Command> make_eval() { return std::make_unique<Eval>(); }

}  // namespace rk
