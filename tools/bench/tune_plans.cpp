#include "tools/bench/tune_plans.h"

#include "engine/base/error.h"
#include "engine/device/dispatch.h"
#include "engine/system/signals.h"
#include "layers/cuda/batchnorm_timing.h"
#include "layers/graphs/graph_run.h"
#include "training/recorded_network.h"
#include "weights/atomic_file.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <span>

namespace rk {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// A convolution and its normalisation with the times of the ways they can be computed in.
struct TimedUnit {
  BatchNormUnit unit;
  gpu::WayTimings ways;

  double ms(gpu::BatchNormWay way) const {
    const gpu::WayTiming& timing = ways[static_cast<std::size_t>(way)];
    return timing.agrees ? timing.ms : kNever;
  }
};

class Tuning {
 public:
  Tuning(const Context& context, const Program& program, const TrainerOptions& options, int repeats,
         const std::string& path, const TuningReport& report)
      : context_(context),
        program_(program),
        options_(options),
        repeats_(repeats),
        path_(path),
        report_(report),
        plans_(plan_environment(context)) {
    if (!std::filesystem::exists(path)) return;
    GpuPlans before = GpuPlans::read(path);
    if (before.environment() == plans_.environment()) plans_ = std::move(before);
  }

  void time_engines() {
    for (const GraphSpec& graph : graphs_of(program_, options_.batchnorm, options_.precision)) {
      stop_if_interrupted();
      if (!plans_.engine(graph.text()).empty()) continue;
      // Sums and normalisations are a choice: without them the step has our own kernels.
      const bool sums = graph.kind == GraphKind::kConvolutionSums;
      if ((sums || graph.c == 0) && !GpuGraph::exists(context_, graph)) continue;
      const GpuPlans::Timing timing = rk::time_engines(context_, graph, repeats_);
      const auto& taken = timing.engines[timing.taken];
      if (sums) {
        sums_engines_[timing.graph] = taken.name;
        continue;
      }
      plans_.add(timing);
      tell({timing.graph, taken.name, taken.ms, timing.engines[0].ms, ""});
    }
  }

  void choose_batchnorm_ways() {
    // One choice for all convolutions with the same normalisation behind them; sums for each.
    std::map<std::string, std::vector<BatchNormUnit>> groups;
    for (const BatchNormUnit& unit : batchnorm_units(program_, options_.precision)) {
      groups[unit.graphs.forward.text()].push_back(unit);
    }
    for (const auto& [normalisation, units] : groups) {
      std::vector<TimedUnit> timed;
      for (const BatchNormUnit& unit : units) {
        stop_if_interrupted();
        timed.push_back({unit, gpu::time_ways(context_, unit, plans_,
                                              sums_engines_[unit.sums.text()], repeats_)});
      }
      choose(normalisation, timed);
    }
  }

 private:
  using Way = gpu::BatchNormWay;

  // What is known so far is kept, should the rest be cut off.
  void tell(const TunedGraph& graph) {
    const std::string text = plans_.text();
    write_atomic(path_, std::as_bytes(std::span(text)));
    report_(graph);
  }

  void choose(const std::string& normalisation, const std::vector<TimedUnit>& units) {
    const auto total = [&](Way way) {
      double ms = 0;
      for (const TimedUnit& timed : units) {
        ms += timed.unit.count * std::min(timed.ms(way), timed.ms(Way::kSums));
      }
      return ms;
    };
    const double graphs = total(Way::kGraphs), own = total(Way::kOwn);
    const Way way = own < graphs ? Way::kOwn : Way::kGraphs;
    if (way == Way::kOwn) {
      plans_.add(normalisation, std::string(GpuPlans::kOwnKernels),
                 fmt::format("{:.4f} ms of {:.4f} with the convolutions before it", own, graphs));
    }
    tell({normalisation, plans_.engine(normalisation), std::min(own, graphs), graphs,
          "with the convolutions before it"});
    for (const TimedUnit& timed : units) {
      const double before = timed.ms(way), with_sums = timed.ms(Way::kSums);
      if (with_sums >= before) continue;
      const std::string graph = timed.unit.sums.text();
      plans_.add(graph, sums_engines_[graph],
                 fmt::format("{:.4f} ms of {:.4f} with its normalisation", with_sums, before));
      tell({graph, sums_engines_[graph], with_sums, before, "with its normalisation"});
    }
  }

  const Context& context_;
  const Program& program_;
  const TrainerOptions& options_;
  int repeats_;
  const std::string& path_;
  const TuningReport& report_;
  GpuPlans plans_;
  std::map<std::string, std::string> sums_engines_;  // by graph; empty: there is none
};

}  // namespace

void tune_plans(const Context& context, const TrainerOptions& options, int repeats,
                const std::string& path, const TuningReport& report) {
  if constexpr (!kHasCuda) {
    fail<DeviceError>("this build has no GPU code; use --device cpu");
  } else {
    NetworkSpec spec;
    spec.arch = options.model.arch;
    spec.dim = options.model.dim;
    const RecordedNetwork network(context, spec, options.batch, options.model.crop);
    Tuning tuning(context, network.program(), options, repeats, path, report);
    tuning.time_engines();
    if (options.batchnorm == BatchNormMode::kBatch && normalises_by_graph(options.precision)) {
      tuning.choose_batchnorm_ways();
    }
  }
}

}  // namespace rk
