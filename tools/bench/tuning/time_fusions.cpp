#include "tools/bench/tuning/time_fusions.h"

#include "engine/base/error.h"
#include "engine/base/note.h"
#include "engine/system/signals.h"
#include "layers/graphs/engine_timing.h"
#include "layers/graphs/graph_runner.h"
#include "tools/bench/tuning/unplanned_network.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace rk {
namespace {

// The time of the fastest engine of each graph, measured only once per graph.
class GraphTimes {
 public:
  GraphTimes(const Context& context, int repeats) : context_(context), repeats_(repeats) {}

  // Infinite, with a note, if no engine runs one of the graphs.
  double of(const std::vector<Graph>& graphs) {
    double ms = 0;
    for (const Graph& graph : graphs) ms += of(graph);
    return ms;
  }

 private:
  double of(const Graph& graph) {
    const auto [time, is_new] = times_.emplace(graph.text(), kNever);
    if (!is_new) return time->second;
    stop_if_interrupted();
    try {
      const GpuPlans::Timing timing = time_engines(context_, graph, repeats_);
      time->second = timing.engines[timing.taken].ms;
    } catch (const DeviceError& error) {
      note(error.what());
    }
    return time->second;
  }

  static constexpr double kNever = std::numeric_limits<double>::infinity();
  const Context& context_;
  int repeats_;
  std::map<std::string, double> times_;
};

}  // namespace

void time_fusions(const Context& context, const TrainerOptions& options, int repeats,
                  double copy_rate, const FusionReport& report) {
  UnplannedNetwork network(context, options);
  std::vector<Fusion> fusions = find_fusions(network.program());
  std::ranges::stable_sort(fusions, std::greater{},
                           [](const Fusion& fusion) { return fusion.count * fusion.saved_bytes; });
  GraphTimes times(context, repeats);
  for (Fusion& fusion : fusions) {
    const double parts = times.of(fusion.parts), fused = times.of(fusion.fused);
    const double saved = fusion.saved_bytes / copy_rate * 1e3;
    report({std::move(fusion), parts, fused, saved});
  }
}

}  // namespace rk
