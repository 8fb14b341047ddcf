#include "tools/bench_eval.h"

#include "engine/parallel.h"
#include "engine/random.h"
#include "retrieval/class_order.h"
#include "retrieval/evaluate.h"
#include "retrieval/score_tiles.h"
#include "tools/bench_device.h"
#include "tools/gpu.h"
#include "tools/json_file.h"
#include "tools/messages.h"
#include "tools/signals.h"
#include "tools/timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace rk {
namespace {

// Unit vectors around class centres of unit length, far enough apart that retrieval is neither lost
// nor perfect.
EmbeddingSet make_set(const Context& context, std::int64_t n, std::int64_t dim,
                      std::int64_t classes, std::uint64_t seed) {
  EmbeddingSet set;
  set.dim = dim;
  set.labels.resize(static_cast<std::size_t>(n));
  set.embeddings.resize(static_cast<std::size_t>(n * dim));
  parallel_for(context.threads(), n, [&](std::int64_t i, int) {
    const std::int64_t label = i % classes;
    set.labels[static_cast<std::size_t>(i)] = label;
    CounterRandom centre(seed, 0, static_cast<std::uint64_t>(label));
    CounterRandom around(seed, 1, static_cast<std::uint64_t>(i));
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

// The tiles of the upper triangle and nothing else.
class ProductsOnly final : public TileVisitor {
 public:
  explicit ProductsOnly(const ClassOrder& order) : order_(order) {}
  bool wants(Range rows, Range columns) const override {
    return columns.end > order_.queries[static_cast<std::size_t>(rows.begin)].class_end;
  }
  void visit(int, const ScoreTile&) override {}

 private:
  const ClassOrder& order_;
};

class BenchEval final : public Command {
 public:
  void add_options(CLI::App& app) override {
    app.add_option("--n", n_, "rows")->check(CLI::Range(2, 1 << 24));
    app.add_option("--dim", dim_, "dimensions")->check(CLI::Range(1, 1 << 16));
    app.add_option("--classes", classes_, "classes, of equal size")->check(CLI::Range(1, 1 << 24));
    app.add_option("--repeats", repeats_, "timed pairs")->check(CLI::Range(1, 1000));
  }

  bool runs_on_cuda() const override { return true; }

  void run(const CommonOptions& common) override {
    const Context context(common.threads);
    const EmbeddingSet set = make_set(context, n_, dim_, classes_, common.seed);
    const EmbeddingView view = set.view();
    const ClassOrder order = make_class_order(view, nullptr);
    EvaluateOptions options;
    options.interrupted = interrupted;
    const auto gpu = open_gpu(device_of(common));
    options.cuda = gpu.get();
    // A GPU computes all of S, the CPU its half.
    const auto products_ms = [&] {
      if (gpu) return device_products_ms(*gpu, n_, n_, dim_);
      return milliseconds([&] {
        ScoreTiles tiles(context, {view.embeddings, order.query_row.data(), n_},
                         {view.embeddings, order.gallery_row.data(), n_}, dim_);
        ProductsOnly products(order);
        tiles.run({0, n_}, products, [](double) { return !interrupted(); });
        stop_if_interrupted();
      });
    };

    std::vector<double> totals, floors, shares;
    Metrics metrics{};
    for (int repeat = 0; repeat < repeats_; ++repeat) {
      totals.push_back(milliseconds([&] {
        auto result = evaluate(context, view, nullptr, options);
        if (!result) stop_if_interrupted();
        metrics = std::move(*result);
      }));
      floors.push_back(products_ms());
      shares.push_back(floors.back() / totals.back());
    }
    const Timing total = summarize(totals), gemm = summarize(floors), share = summarize(shares);
    const double flops = (gpu ? 2.0 : 1.0) * static_cast<double>(n_) * static_cast<double>(n_) *
                         static_cast<double>(dim_);

    nlohmann::json json = {{"n", n_},
                           {"dim", dim_},
                           {"classes", classes_},
                           {"repeats", repeats_},
                           {"symmetric", metrics.symmetric},
                           {"peak_bytes", metrics.bytes_reserved},
                           {"gemm_gflops", flops / gemm.median * 1e-6},
                           {"recall_at_1", metrics.recall_for(1)},
                           {"device", common.device},
                           {"threads", context.threads()},
                           {"version", RK_VERSION}};
    if (gpu) json["device_name"] = gpu_name(*gpu);
    put(json, "total_ms", total);
    put(json, "gemm_ms", gemm);
    put(json, "share", share);
    print(
        "{} rows of {}, {} classes, {}\n"
        "total {:.1f} ms ({:.1f} to {:.1f})  GEMM {:.1f} ms ({:.1f} to {:.1f}, {:.0f} GFLOP/s)  "
        "share {:.0f} %  {:.1f} MiB beside the embeddings\n",
        n_, dim_, classes_, gpu ? gpu_name(*gpu) : fmt::format("{} threads", context.threads()),
        total.median, total.least, total.most, gemm.median, gemm.least, gemm.most,
        flops / gemm.median * 1e-6, 100 * share.median,
        static_cast<double>(metrics.bytes_reserved) / (1 << 20));
    if (!common.json.empty()) write_json(common.json, json);
  }

 private:
  std::int64_t n_ = 60502;
  std::int64_t dim_ = 512;
  std::int64_t classes_ = 11316;
  int repeats_ = 3;
};

}  // namespace

std::unique_ptr<Command> make_bench_eval() { return std::make_unique<BenchEval>(); }

}  // namespace rk
