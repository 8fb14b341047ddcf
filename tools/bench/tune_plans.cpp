#include "tools/bench/tune_plans.h"

#include "engine/base/error.h"
#include "engine/base/note.h"
#include "engine/system/signals.h"
#include "layers/gpu/batchnorm_timing.h"
#include "layers/gpu/convolution.h"
#include "layers/gpu/gradient_sums.h"
#include "layers/gpu/gradient_sums_timing.h"
#include "layers/graphs/graph_run.h"
#include "layers/networks/resnet.h"
#include "weights/atomic_file.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <span>

namespace rk {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// A convolution and its normalisation with the times of the algorithms.
struct TimedUnit {
  gpu::BatchNormUnit unit;
  gpu::AlgorithmTimings timings;

  double ms(gpu::BatchNormAlgorithm algorithm) const {
    const gpu::AlgorithmTiming& timing = timings[static_cast<std::size_t>(algorithm)];
    return timing.agrees ? timing.ms : kNever;
  }
};

class Tuning {
 public:
  // program: recorded with an empty plan table, so that graphs normalise wherever they can.
  Tuning(const Context& context, Program& program, int repeats, const std::string& path,
         const TuningReport& report)
      : context_(context),
        program_(program),
        units_(gpu::batchnorm_units(program)),
        repeats_(repeats),
        path_(path),
        report_(report),
        plans_(plan_environment(context)) {
    if (!std::filesystem::exists(path)) return;
    GpuPlans before = GpuPlans::read(path);
    if (before.environment() != plans_.environment()) {
      fail<UsageError>("--tune {}: holds the plans of {}, this is {}; give another file", path,
                       before.environment(), plans_.environment());
    }
    plans_ = std::move(before);
  }

  void time_engines() {
    for (const Graph& graph : graphs_of(program_)) {
      // Without a normalisation's graph the step has our own kernels.
      const bool choice =
          graph.has(Graph::Op::kBatchNorm) || graph.has(Graph::Op::kBatchNormGradient);
      if (!is_to_be_timed(graph, choice)) continue;
      const auto timing = timed(graph);
      if (!timing) continue;
      const auto& taken = timing->engines[timing->taken];
      plans_.add(*timing);
      tell({timing->graph, taken.name, taken.ms, timing->engines[0].ms, ""});
    }
    for (const gpu::BatchNormUnit& unit : units_) {
      std::string& engine = sums_engines_[unit.sums.text()];
      if (!engine.empty() || !gpu::fuses_sums(unit.sums.precision()) ||
          !is_to_be_timed(unit.sums, true)) {
        continue;
      }
      const auto timing = timed(unit.sums);
      if (timing) engine = timing->engines[timing->taken].name;
    }
  }

  void choose_batchnorm_algorithms() {
    // One choice for all convolutions with the same normalisation behind them; sums for each.
    std::map<std::string, std::vector<gpu::BatchNormUnit>> groups;
    for (const gpu::BatchNormUnit& unit : units_) {
      groups[unit.graphs.forward.text()].push_back(unit);
    }
    for (const auto& [normalisation, units] : groups) {
      std::vector<TimedUnit> timed;
      for (const gpu::BatchNormUnit& unit : units) {
        stop_if_interrupted();
        timed.push_back({unit, gpu::time_algorithms(context_, unit, plans_,
                                                    sums_engines_[unit.sums.text()], repeats_)});
      }
      choose(normalisation, timed);
    }
  }

  // Of frozen statistics: whether the graph of a gradient adds it up, too.
  void choose_gradient_sums() {
    for (const Graph& graph : graphs_of(program_)) {
      if (!gpu::is_masked_gradient(graph)) continue;
      const Graph with_sums = gpu::graph_with_sums(graph);
      if (!is_to_be_timed(with_sums, true)) continue;
      const auto timing = timed(with_sums);
      if (!timing) continue;
      const std::string& engine = timing->engines[timing->taken].name;
      GpuPlans tried = plans_;
      tried.add(*timing);
      set_plans(context_, tried);
      const gpu::GradientSumsTiming sums = gpu::time_gradient_sums(context_, graph, repeats_);
      set_plans(context_, plans_);
      if (!sums.agrees) {
        note(fmt::format("{}: {} is off by {:.1e}, or differs from run to run; it is left out",
                         timing->graph, engine, sums.error));
      } else if (sums.graph_ms < sums.kernel_ms) {
        plans_.add(timing->graph, engine,
                   fmt::format("{:.4f} ms of {:.4f} with the sums", sums.graph_ms, sums.kernel_ms));
        tell({timing->graph, engine, sums.graph_ms, sums.kernel_ms, "with the sums"});
      }
    }
  }

 private:
  using Algorithm = gpu::BatchNormAlgorithm;

  // Not one whose engine is known, nor one that a step can do without and the library has not got.
  bool is_to_be_timed(const Graph& graph, bool choice) {
    stop_if_interrupted();
    return plans_.engine(graph.text()).empty() &&
           (!choice || GpuGraph::exists(context_, graph, "our own kernels take its place"));
  }

  // Empty, with a note, where no engine runs the graph: the others are tuned all the same.
  std::optional<GpuPlans::Timing> timed(const Graph& graph) const {
    try {
      return rk::time_engines(context_, graph, repeats_);
    } catch (const DeviceError& error) {
      note(fmt::format("{}; it is not tuned", error.what()));
      return std::nullopt;
    }
  }

  // What is known so far is kept, should the rest be cut off.
  void tell(const TunedGraph& graph) {
    const std::string text = plans_.text();
    write_atomic(path_, std::as_bytes(std::span(text)));
    report_(graph);
  }

  void choose(const std::string& normalisation, const std::vector<TimedUnit>& units) {
    const auto total = [&](Algorithm algorithm) {
      double ms = 0;
      for (const TimedUnit& timed : units) {
        ms += timed.unit.count * std::min(timed.ms(algorithm), timed.ms(Algorithm::kSums));
      }
      return ms;
    };
    const double graphs = total(Algorithm::kGraphs), own = total(Algorithm::kOwn);
    const Algorithm algorithm = own < graphs ? Algorithm::kOwn : Algorithm::kGraphs;
    if (algorithm == Algorithm::kOwn) {
      plans_.add(normalisation, std::string(GpuPlans::kOwnKernels),
                 fmt::format("{:.4f} ms of {:.4f} with the convolutions before it", own, graphs));
    }
    tell({normalisation, plans_.engine(normalisation), std::min(own, graphs), graphs,
          "with the convolutions before it"});
    for (const TimedUnit& timed : units) {
      const double before = timed.ms(algorithm), with_sums = timed.ms(Algorithm::kSums);
      if (with_sums >= before) continue;
      const std::string graph = timed.unit.sums.text();
      plans_.add(graph, sums_engines_[graph],
                 fmt::format("{:.4f} ms of {:.4f} with its normalisation", with_sums, before));
      tell({graph, sums_engines_[graph], with_sums, before, "with its normalisation"});
    }
  }

  const Context& context_;
  Program& program_;
  std::vector<gpu::BatchNormUnit> units_;
  int repeats_;
  const std::string& path_;
  const TuningReport& report_;
  GpuPlans plans_;
  std::map<std::string, std::string> sums_engines_;  // by graph; empty: there is none
};

}  // namespace

void tune_plans(const Context& context, const TrainerOptions& options, int repeats,
                const std::string& path, const TuningReport& report) {
  set_plans(context, GpuPlans(plan_environment(context)));
  NetworkSpec spec;
  spec.arch = options.model.arch;
  spec.dim = options.model.dim;
  spec.batchnorm = options.batchnorm;
  Parameters parameters;
  Program program(context, parameters, {.gradients = true, .precision = options.precision});
  build_network(program, spec, options.batch, options.model.crop, options.model.crop);
  Tuning tuning(context, program, repeats, path, report);
  tuning.time_engines();
  if (options.batchnorm == BatchNormMode::kBatch && gpu::normalises_by_graph(options.precision)) {
    tuning.choose_batchnorm_algorithms();
  }
  if (options.batchnorm == BatchNormMode::kRunning && options.precision == Precision::kFp16) {
    tuning.choose_gradient_sums();
  }
}

}  // namespace rk
