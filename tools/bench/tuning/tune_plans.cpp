#include "tools/bench/tuning/tune_plans.h"

#include "engine/base/error.h"
#include "engine/base/note.h"
#include "engine/system/signals.h"
#include "layers/gpu/convolution.h"
#include "layers/gpu/gradient_sums.h"
#include "layers/graphs/attempt.h"
#include "layers/graphs/engine_timing.h"
#include "layers/graphs/graph_runner.h"
#include "tools/bench/tuning/batchnorm_timing.h"
#include "tools/bench/tuning/gradient_sums_timing.h"
#include "tools/bench/tuning/unplanned_network.h"
#include "weights/atomic_file.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <span>

namespace rk {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// A convolution and its normalisation, with the times of the algorithms.
struct TimedUnit {
  BatchNormUnit unit;
  std::string engine;  // of the convolution with sums; empty: none
  AlgorithmTimings timings;

  double ms(BatchNormAlgorithm algorithm) const {
    const AlgorithmTiming& timing = timings[static_cast<std::size_t>(algorithm)];
    return timing.agrees ? timing.ms : kNever;
  }
};

class Tuning {
 public:
  // program: recorded with an empty plan table, so that graphs normalise wherever possible.
  Tuning(const Context& context, Program& program, BatchNormMode mode, int repeats,
         const std::string& path, const TuningReport& report)
      : context_(context),
        program_(program),
        units_(batchnorm_units(program)),
        repeats_(repeats),
        path_(path),
        report_(report),
        plans_(plan_environment(context)),
        choose_algorithms_(mode == BatchNormMode::kBatch &&
                           gpu::normalises_by_graph(program.options().precision)),
        choose_sums_(mode == BatchNormMode::kRunning &&
                     program.options().precision == Precision::kFp16) {
    if (!std::filesystem::exists(path)) return;
    GpuPlans before = GpuPlans::read(path);
    if (before.environment() != plans_.environment()) {
      fail<UsageError>("--tune {}: holds the plans of {}, this is {}; give another file", path,
                       before.environment(), plans_.environment());
    }
    plans_ = std::move(before);
  }

  // Decides the tasks, those that move most bytes first, but the algorithms of batch norm before
  // all other graphs, since they have the most time to gain. Returns the number of tasks left.
  int run(double seconds) {
    const auto began = std::chrono::steady_clock::now();
    std::vector<Task> tasks = batchnorm_tasks();
    std::ranges::move(graph_tasks(), std::back_inserter(tasks));
    if (seconds > 0 && choose_algorithms_) build_choices();
    save();  // if the time is over before any is decided, the step is timed with the file as it is
    int left = 0;
    for (const Task& task : tasks) {
      stop_if_interrupted();
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - began;
      if (taken.count() < seconds) {
        decide(task);
      } else {
        ++left;
      }
    }
    return left;
  }

 private:
  using Algorithm = BatchNormAlgorithm;
  struct Task {
    double bytes = 0;  // moved in a step
    std::string what;
    std::function<void()> decide;
  };

  // A failed comparison does not stop the others.
  void decide(const Task& task) {
    try {
      attempt(context_, task.what, task.decide);
    } catch (const DeviceError& error) {
      note(fmt::format("{}: {}; it is not tuned", task.what, error.what()));
      set_plans(context_, plans_);
    }
  }

  static void sort(std::vector<Task>& tasks) {
    std::ranges::stable_sort(tasks, std::greater{}, &Task::bytes);
  }
  static double bytes_of(const Graph& graph) {
    double bytes = 0;
    for (const Graph::Tensor& tensor : graph.tensors()) {
      if (tensor.role != GraphRole::kNone) bytes += static_cast<double>(tensor.bytes());
    }
    return bytes;
  }

  std::vector<Task> graph_tasks() {
    std::vector<Task> tasks;
    for (const CountedGraph& counted : counted_graphs(program_)) {
      const Graph& graph = counted.graph;
      // A graph for normalisation is optional: our own kernels can take its place.
      const bool choice = normalises(graph);
      if (choice && choose_algorithms_) continue;  // left to batchnorm_tasks()
      const bool sums = choose_sums_ && gpu::is_masked_gradient(graph);
      if (is_decided(graph) && (!sums || is_decided(gpu::graph_with_sums(graph)))) continue;
      tasks.push_back({counted.count * bytes_of(graph), graph.text(), [this, graph, choice, sums] {
                         time_engines(graph, choice);
                         if (sums) choose_gradient_sums(graph);
                       }});
    }
    sort(tasks);
    return tasks;
  }

  static bool normalises(const Graph& graph) {
    return graph.has(Graph::Op::kBatchNorm) || graph.has(Graph::Op::kBatchNormGradient);
  }

  // Builds the optional graphs in parallel: each takes the library's compiler half a second.
  void build_choices() {
    std::vector<Graph> choices;
    for (const BatchNormUnit& unit : units_) {
      if (is_decided(unit.sums)) continue;
      choices.push_back(unit.graphs.forward);
      choices.push_back(unit.graphs.backward);
      if (gpu::fuses_sums(unit.sums.precision())) choices.push_back(unit.sums);
    }
    build_graphs(context_, choices, {});
  }

  // One choice of algorithm for all convolutions followed by the same normalisation; one choice of
  // sums for each convolution.
  std::vector<Task> batchnorm_tasks() {
    if (!choose_algorithms_) return {};
    std::map<std::string, std::vector<BatchNormUnit>> groups;
    for (const BatchNormUnit& unit : units_) {
      groups[unit.graphs.forward.text()].push_back(unit);
    }
    std::vector<Task> tasks;
    for (const auto& group : groups) {
      double bytes = 0;
      bool decided = true;
      for (const BatchNormUnit& unit : group.second) {
        bytes += unit.count * bytes_of(unit.sums);
        decided = decided && is_decided(unit.sums);
      }
      if (decided) continue;
      tasks.push_back(
          {bytes, group.first, [this, group] { choose(group.first, time(group.second)); }});
    }
    sort(tasks);
    return tasks;
  }

  bool is_decided(const Graph& graph) const { return !plans_.engine(graph.text()).empty(); }
  // Whether the library has an optional graph.
  bool exists(const Graph& graph) const {
    return GraphRunner::exists(context_, graph, "our own kernels take its place");
  }

  // Empty, with a note, if no engine runs the graph; tuning of the others continues.
  std::optional<GpuPlans::Timing> timed(const Graph& graph) const {
    try {
      return rk::time_engines(context_, graph, repeats_);
    } catch (const DeviceError& error) {
      note(fmt::format("{}; it is not tuned", error.what()));
      return std::nullopt;
    }
  }

  void time_engines(const Graph& graph, bool choice) {
    if (is_decided(graph) || (choice && !exists(graph))) return;
    const auto timing = timed(graph);
    if (!timing) return;
    const auto& taken = timing->engines[timing->taken];
    plans_.add(*timing);
    tell({timing->graph, taken.name, taken.ms, timing->engines[0].ms, ""});
  }

  // Records the engine for an optional graph, or, if they are faster, our own kernels.
  void decide(const Graph& graph, const std::string& engine, double ms, double own_ms,
              const std::string& timed) {
    const bool takes = !engine.empty() && ms < own_ms;
    const std::string name = takes ? engine : std::string(GpuPlans::kOwnKernels);
    plans_.add(graph.text(), name,
               std::isfinite(ms) ? fmt::format("{:.4f} ms of {:.4f} {}", takes ? ms : own_ms,
                                               takes ? own_ms : ms, timed)
                                 : fmt::format("{:.4f} ms {}", own_ms, timed));
    tell({graph.text(), name, takes ? ms : own_ms, own_ms, timed});
  }

  // For frozen statistics: decides whether the graph of a gradient also accumulates it.
  void choose_gradient_sums(const Graph& graph) {
    const Graph with_sums = gpu::graph_with_sums(graph);
    if (is_decided(with_sums)) return;
    const auto timing = exists(with_sums) ? timed(with_sums) : std::nullopt;
    if (!timing) {
      plans_.add(with_sums.text(), std::string(GpuPlans::kOwnKernels), "no engine runs it");
      return save();
    }
    const std::string& engine = timing->engines[timing->taken].name;
    GpuPlans tried = plans_;
    tried.add(*timing);
    set_plans(context_, tried);
    const GradientSumsTiming sums = time_gradient_sums(context_, graph, repeats_);
    set_plans(context_, plans_);
    if (!sums.agrees) {
      note(fmt::format("{}: {} is off by {:.1e}, or differs from run to run; it is left out",
                       timing->graph, engine, sums.error));
    }
    decide(with_sums, engine, sums.agrees ? sums.graph_ms : kNever, sums.kernel_ms,
           "with the sums");
  }

  std::vector<TimedUnit> time(const std::vector<BatchNormUnit>& units) {
    std::vector<TimedUnit> timed_units;
    for (const BatchNormUnit& unit : units) {
      stop_if_interrupted();
      // Each algorithm runs on its fastest engines.
      time_engines(unit.graphs.forward, true);
      time_engines(unit.graphs.backward, true);
      time_engines(gpu::forward_graph(unit.convolution, unit.sums.precision(), {}), false);
      std::string engine;
      if (gpu::fuses_sums(unit.sums.precision()) && exists(unit.sums)) {
        if (const auto timing = timed(unit.sums)) engine = timing->engines[timing->taken].name;
      }
      auto timings = time_algorithms(context_, unit, plans_, engine, repeats_);
      timed_units.push_back({unit, engine, timings});
    }
    return timed_units;
  }

  // Keeps the results so far in case tuning is interrupted.
  void save() const {
    const std::string text = plans_.text();
    write_atomic(path_, text);
  }
  void tell(const TunedGraph& graph) {
    save();
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
    // A convolution may be followed by several normalisations; if an earlier tuning decided it, the
    // times with the other normalisations are unknown.
    for (const TimedUnit& timed : units) {
      if (is_decided(timed.unit.sums) && !sums_ms_.contains(timed.unit.sums.text())) continue;
      auto& [with_sums, without] = sums_ms_[timed.unit.sums.text()];
      with_sums += timed.unit.count * timed.ms(Algorithm::kSums);
      without += timed.unit.count * timed.ms(algorithm);
      decide(timed.unit.sums, timed.engine, with_sums, without, "in all, with its normalisation");
    }
  }

  const Context& context_;
  Program& program_;
  std::vector<BatchNormUnit> units_;
  int repeats_;
  const std::string& path_;
  const TuningReport& report_;
  GpuPlans plans_;
  bool choose_algorithms_, choose_sums_;
  struct SumsTimes {
    double with_sums = 0, without = 0;
  };
  std::map<std::string, SumsTimes> sums_ms_;  // key: the graph with sums
};

}  // namespace

int tune_plans(const Context& context, const TrainerOptions& options, int repeats, double seconds,
               const std::string& path, const TuningReport& report) {
  UnplannedNetwork network(context, options);
  return Tuning(context, network.program(), options.batchnorm, repeats, path, report).run(seconds);
}

}  // namespace rk
