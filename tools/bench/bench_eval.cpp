#include "tools/bench/bench_eval.h"

#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/integers.h"
#include "engine/base/parallel.h"
#include "engine/base/random.h"
#include "engine/device/gemm.h"
#include "engine/system/signals.h"
#include "retrieval/evaluate.h"
#include "retrieval/passes/class_order.h"
#include "retrieval/passes/score_tiles.h"
#include "retrieval/statistics/bootstrap.h"
#include "retrieval/statistics/per_class.h"
#include "tools/bench/device_products.h"
#include "tools/bench/timing.h"
#include "tools/cli/json_file.h"
#include "tools/cli/messages.h"
#include "tools/cli/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

namespace rk {
namespace {

constexpr std::int64_t kBlockRows = 4096;
constexpr std::int64_t kBlockColumns = 8192;

// Unit vectors around random class centres, the noise twice as long as these, so that retrieval is
// neither hopeless nor perfect.
EmbeddingSet make_set(const Context& context, std::int64_t n, std::int64_t dim,
                      std::int64_t classes, std::uint64_t seed, std::int64_t first) {
  EmbeddingSet set;
  set.dim = dim;
  set.labels.resize(static_cast<std::size_t>(n));
  set.embeddings.resize(static_cast<std::size_t>(n * dim));
  parallel_for(context.threads(), n, [&](std::int64_t i, int) {
    const std::int64_t label = i % classes;
    set.labels[at(i)] = label;
    CounterRandom centre(seed, 0, static_cast<std::uint64_t>(label));
    CounterRandom around(seed, 1, static_cast<std::uint64_t>(first + i));
    float* row = set.embeddings.data() + i * dim;
    double squares = 0;
    for (std::int64_t d = 0; d < dim; ++d) {
      const double x = centre.normal() + 2 * around.normal();
      row[d] = static_cast<float>(x);
      squares += x * x;
    }
    const auto scale = static_cast<float>(1 / std::sqrt(squares));
    for (std::int64_t d = 0; d < dim; ++d) row[d] *= scale;
  });
  return set;
}

// Visits the tiles that the metrics need, without processing them.
class ProductsOnly final : public TileVisitor {
 public:
  ProductsOnly(const ClassOrder& order, bool symmetric) : order_(order), symmetric_(symmetric) {}
  bool wants(Range rows, Range columns) const override {
    return !symmetric_ || order_.reach_behind_class(rows, columns);
  }
  void visit(int, const ScoreTile&) override {}

 private:
  const ClassOrder& order_;
  bool symmetric_;
};

// All of S = Q G^T, 128 MiB at a time.
void whole_matrix(const Context& context, const EmbeddingView& queries,
                  const EmbeddingView& gallery, Buffer& block) {
  for (std::int64_t r = 0; r < queries.count; r += kBlockRows) {
    for (std::int64_t c = 0; c < gallery.count; c += kBlockColumns) {
      stop_if_interrupted();
      const std::int64_t rows = std::min(kBlockRows, queries.count - r);
      const std::int64_t columns = std::min(kBlockColumns, gallery.count - c);
      const std::int64_t dim = queries.dim;
      gemm(context,
           {.a = {queries.embeddings + r * dim, rows, dim, dim},
            .b = transposed(Factor<float>{gallery.embeddings + c * dim, columns, dim, dim}),
            .c = {block.as<float>(), rows, columns, columns}});
    }
  }
}

class BenchEval final : public Command {
 public:
  void add_options(Flags& flags) override {
    flags.add("--n", n_, "rows").check(in_range(2, 1 << 24));
    flags.add("--dim", dim_, "dimensions").check(in_range(1, 1 << 16));
    flags
        .add("--classes", classes_,
             "classes, of equal size; 0: as many for the rows as the test set of SOP has, where "
             "one has 5 or 6")
        .check(in_range(0, 1 << 24));
    flags
        .add("--gallery", gallery_,
             "rows to search in, of the same classes; 0: the rows among themselves, which "
             "takes half the products on a CPU")
        .check(in_range(0, 1 << 24));
    flags.add("--repeats", repeats_, "timed pairs").check(in_range(1, 1000));
  }

  bool runs_on_cuda() const override { return true; }
  const char* less_memory() const override { return "--n, --dim, --gallery"; }

  void run(const CommonOptions& common) override {
    if (classes_ == 0) classes_ = std::max<std::int64_t>(1, n_ * kSopClasses / kSopRows);
    const std::int64_t most = gallery_ > 0 ? std::min(n_, gallery_) : n_ / 2;
    if (classes_ > most) {
      fail<UsageError>("--classes {}: in so many, {} have nothing to find; give at most {}",
                       classes_, counted(n_, "row"), most);
    }
    const Context context(common.threads, device_of(common));
    const EmbeddingSet set = make_set(context, n_, dim_, classes_, common.seed, 0);
    const EmbeddingSet others = make_set(context, gallery_, dim_, classes_, common.seed, n_);
    const EmbeddingView view = set.view(), other_view = others.view();
    const EmbeddingView* gallery = gallery_ > 0 ? &other_view : nullptr;
    const Measured measured = measure(context, set, view, gallery, common.quiet);
    write_result(common, context.threads(), report(context, measured));
  }

 private:
  struct Measured {
    Metrics metrics{};
    std::vector<double> totals, alone, binned, floors, shares;
    std::vector<double> matrices, of_matrices;  // CPU only
  };

  Measured measure(const Context& context, const EmbeddingSet& set, const EmbeddingView& view,
                   const EmbeddingView* gallery, bool quiet) const {
    const EmbeddingView& candidates = gallery != nullptr ? *gallery : view;
    const ClassOrder order = make_class_order(view, gallery);
    EvaluateOptions options;
    options.interrupted = interrupted;
    options.per_query = true;
    Measured out;
    EvaluateOptions with_bins = options;  // what the exact ROC-AUC costs is the difference
    with_bins.most_ordered = 0;
    const auto all_ms = [&] {
      return milliseconds([&] {
        out.alone.push_back(milliseconds([&] {
          auto result = evaluate(context, view, gallery, options);
          if (!result) stop_if_interrupted();
          out.metrics = std::move(*result);
        }));
        BootstrapOptions resampling;
        resampling.classes = set.labels;
        resampling.interrupted = interrupted;
        bootstrap(context, out.metrics.per_query, out.metrics.recall_at, resampling);
        stop_if_interrupted();
        metrics_by_group(out.metrics.per_query, set.labels);
      });
    };
    const auto products_ms = [&] {
      if (context.on_gpu()) {
        return device_products_ms(context.cuda(), n_, candidates.count, dim_);
      }
      return milliseconds([&] {
        ScoreTiles tiles(context, {view.embeddings, order.query_row.data(), n_},
                         {candidates.embeddings, order.gallery_row.data(), candidates.count}, dim_);
        ProductsOnly products(order, out.metrics.symmetric);
        tiles.run({0, n_}, products, [](double) { return !interrupted(); });
        stop_if_interrupted();
      });
    };
    std::optional<Buffer> block;
    if (!context.on_gpu()) block.emplace(Buffer::of<float>(kBlockRows * kBlockColumns));
    // Told of between what is timed.
    const std::int64_t parts = context.on_gpu() ? 3 : 4;
    Progress progress("timing", parts * repeats_, "parts", quiet);
    std::int64_t done = 0;
    for (int repeat = 0; repeat < repeats_; ++repeat) {
      out.totals.push_back(all_ms());
      progress.update(++done);
      out.binned.push_back(milliseconds([&] {
        if (!evaluate(context, view, gallery, with_bins)) stop_if_interrupted();
      }));
      progress.update(++done);
      out.floors.push_back(products_ms());
      out.shares.push_back(out.floors.back() / out.totals.back());
      progress.update(++done);
      if (context.on_gpu()) continue;
      out.matrices.push_back(
          milliseconds([&] { whole_matrix(context, view, candidates, *block); }));
      out.of_matrices.push_back(out.totals.back() / out.matrices.back());
      progress.update(++done);
    }
    return out;
  }

  nlohmann::json report(const Context& context, const Measured& measured) const {
    const Metrics& metrics = measured.metrics;
    const Timing total = summarize(measured.totals), alone = summarize(measured.alone),
                 binned = summarize(measured.binned), gemm = summarize(measured.floors),
                 share = summarize(measured.shares);
    const double matrix_flops = 2.0 * static_cast<double>(n_) *
                                static_cast<double>(gallery_ > 0 ? gallery_ : n_) *
                                static_cast<double>(dim_);
    const double flops = metrics.symmetric ? matrix_flops / 2 : matrix_flops;
    nlohmann::json json = {{"n", n_},
                           {"dim", dim_},
                           {"classes", classes_},
                           {"gallery", gallery_},
                           {"repeats", repeats_},
                           {"symmetric", metrics.symmetric},
                           {"peak_bytes", metrics.bytes_reserved},
                           {"gemm_gflops", flops / gemm.median * 1e-6},
                           {"recall_at_1", metrics.recall_for(1)}};
    if (context.on_gpu()) json["device_name"] = context.gpu_name();
    put(json, "total_ms", total);
    put(json, "metrics_ms", alone);
    put(json, "binned_ms", binned);
    put(json, "gemm_ms", gemm);
    put(json, "share", share);
    print(
        "{} of {}, {}, {}\n"
        "total {:.1f} ms ({:.1f} to {:.1f}), {:.1f} without intervals and classes, "
        "{:.1f} of these with ROC-AUC from a histogram  GEMM {:.1f} ms "
        "({:.1f} to {:.1f}, {:.0f} GFLOP/s)  "
        "share {:.0f} %  {:.1f} MiB beside the embeddings\n",
        counted(n_, "row"), dim_, counted(classes_, "class"),
        context.on_gpu() ? context.gpu_name() : counted(context.threads(), "thread"), total.median,
        total.least, total.most, alone.median, binned.median, gemm.median, gemm.least, gemm.most,
        flops / gemm.median * 1e-6, 100 * share.median,
        static_cast<double>(metrics.bytes_reserved) / (1 << 20));
    if (context.on_gpu()) return json;
    const Timing matrix = summarize(measured.matrices), of_matrix = summarize(measured.of_matrices);
    put(json, "matrix_ms", matrix);
    put(json, "of_matrix", of_matrix);
    json["matrix_gflops"] = matrix_flops / matrix.median * 1e-6;
    print(
        "whole matrix {:.1f} ms ({:.1f} to {:.1f}, {:.0f} GFLOP/s)  total / whole matrix {:.2f}\n",
        matrix.median, matrix.least, matrix.most, matrix_flops / matrix.median * 1e-6,
        of_matrix.median);
    return json;
  }

  static constexpr std::int64_t kSopRows = 60502, kSopClasses = 11316;
  std::int64_t n_ = kSopRows;
  std::int64_t dim_ = 512;
  std::int64_t classes_ = 0;
  std::int64_t gallery_ = 0;
  int repeats_ = 3;
};

}  // namespace

std::unique_ptr<Command> make_bench_eval() { return std::make_unique<BenchEval>(); }

}  // namespace rk
