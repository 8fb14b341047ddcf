#include "layers/graphs/engine_timing.h"

#include "engine/base/error.h"
#include "engine/base/integers.h"
#include "engine/base/note.h"
#include "engine/device/cuda/context.h"
#include "engine/device/cuda/graph.h"
#include "layers/graphs/attempt.h"
#include "layers/graphs/cudnn_handle.h"
#include "layers/graphs/engines.h"
#include "layers/graphs/trial.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <future>
#include <memory>
#include <string>
#include <vector>

namespace rk {

using cudnn::Engines;
using cudnn::Handle;

namespace {

// The tensors of a graph in device memory, for timing: noise, or copies of another object's.
class Tensors {
 public:
  Tensors(const Context& context, Engines& engines, const Tensors* other = nullptr)
      : places_(engines.constants()) {
    const std::vector<Graph::Tensor>& tensors = engines.graph().tensors();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const Graph::Tensor& tensor = tensors[i];
      if (tensor.role == GraphRole::kNone) continue;
      memory_.push_back(context.allocate(tensor.bytes()));
      places_[cudnn::place_of(static_cast<Graph::Value>(i))] = memory_.back().data();
      if (!tensor.written && other != nullptr) {
        const Memory& from = other->memory_[memory_.size() - 1];
        context.copy(memory_.back().data(), from.data(), from.bytes());
      } else if (!tensor.written) {
        const std::size_t count = tensor.bytes() / size_of(tensor.type);
        gpu::fill_with_noise(context, memory_.back().data(), static_cast<std::int64_t>(count),
                             tensor.type, static_cast<std::uint32_t>(tensor.role));
      }
      // The main output: the largest written tensor (the last one, if several) says most about the
      // arithmetic.
      if (tensor.written && (result_ < 0 || memory_.back().bytes() >= result().bytes())) {
        result_ = static_cast<int>(memory_.size()) - 1;
        type_ = tensor.type;
      }
    }
  }

  cudnn::Places& places() { return places_; }
  std::size_t bytes() const {
    std::size_t all = 0;
    for (const Memory& memory : memory_) all += memory.bytes();
    return all;
  }
  // The graph's main output.
  const Memory& result() const { return memory_[at(result_)]; }
  DType type() const { return type_; }

 private:
  std::vector<Memory> memory_;
  cudnn::Places places_;
  int result_ = -1;
  DType type_{};
};

// An engine that time_engines() runs.
struct TimedEngine {
  std::shared_ptr<Engines> engines;
  std::int64_t engine = -1;

  std::string name() const { return engines->name(engine); }
};

// A graph's engines for a thread that compiles one. It may use the handle, which is destroyed last.
struct BuiltApart {
  explicit BuiltApart(const Graph& graph) : engines(graph, builder) {}
  Handle builder{nullptr};
  Engines engines;
};

// Compiles at most so many of `order` side by side, each in a thread of its own.
std::vector<TimedEngine> compile_engines(const Context& context, const Graph& graph,
                                         const std::vector<std::int64_t>& order, std::size_t most) {
  std::atomic<std::size_t> next = 0;
  const auto compile_one = [&]() -> TimedEngine {
    context.cuda().use_in_this_thread();
    const auto apart = std::make_shared<BuiltApart>(graph);
    for (std::size_t i = next++; i < order.size(); i = next++) {
      if (!apart->engines.build(order[i]).empty()) continue;
      return {std::shared_ptr<Engines>(apart, &apart->engines), order[i]};
    }
    return {};
  };
  std::vector<std::future<TimedEngine>> threads;
  for (std::size_t t = 0; t < std::min(most, order.size()); ++t) {
    threads.push_back(std::async(std::launch::async, compile_one));
  }
  std::vector<TimedEngine> built;
  for (auto& thread : threads) {
    TimedEngine one = thread.get();
    if (one.engines != nullptr) built.push_back(std::move(one));
  }
  return built;
}

// The engines worth timing that can be built, in the heuristics' order: ready-made ones or, if
// there are none, ones that are compiled. Many in the list may be of a precision that the graph
// bars, and answer at once that they cannot be built.
std::vector<TimedEngine> engines_worth_timing(const Context& context, const Graph& graph) {
  // Each engine loads its own kernels, which takes longer than running them.
  constexpr std::size_t kMostReady = 12, kMostCompiled = 8;
  const auto all = std::make_shared<Engines>(graph, cudnn_handle(context));
  const auto in_order = [&](bool compiled) {
    std::vector<std::int64_t> engines, order;
    std::vector<std::string> names;
    for (std::int64_t i = 0; i < all->count(); ++i) {
      if (all->compiles(i) != compiled) continue;
      engines.push_back(i);
      names.push_back(all->name(i));
    }
    for (const std::size_t place : engines_to_time(names)) order.push_back(engines[place]);
    return order;
  };
  std::vector<TimedEngine> built;
  for (const std::int64_t engine : in_order(false)) {
    if (built.size() == kMostReady) break;
    if (all->build(engine).empty()) built.push_back({all, engine});
  }
  if (built.empty()) built = compile_engines(context, graph, in_order(true), kMostCompiled);
  std::ranges::sort(built, {}, &TimedEngine::engine);
  return built;
}

}  // namespace

GpuPlans::Timing time_engines(const Context& context, const Graph& graph, int repeats) {
  const Handle& handle = cudnn_handle(context);
  GpuPlans::Timing timing{.graph = graph.text(), .engines = {}, .taken = 0};
  const std::vector<TimedEngine> engines = engines_worth_timing(context, graph);
  if (engines.empty()) fail<DeviceError>("cuDNN: {}: no engine runs it here", timing.graph);
  std::size_t largest = 0;
  for (const TimedEngine& each : engines) {
    largest = std::max(largest, each.engines->workspace_bytes(each.engine));
  }
  const Memory workspace = context.allocate(largest);
  Engines& constants = *engines[0].engines;  // read by all engines
  std::vector<Tensors> sets;
  sets.reserve(gpu::kTrialLaunches);
  sets.emplace_back(context, constants);
  while (sets.size() < gpu::kTrialLaunches && sets.size() * sets[0].bytes() < gpu::kBeyondCaches) {
    sets.emplace_back(context, constants, &sets[0]);
  }
  const auto run = [&](const TimedEngine& each, std::size_t set) {
    each.engines->run(handle, sets[set].places(), workspace.data(), each.engine);
  };
  const Tensors& first = sets[0];
  // Runs an engine once, then captures its launches for timing; null if it cannot run or cannot be
  // captured. The result of the engine before it must not be taken for its own, and the gaps
  // between its rows are compared as well.
  const auto replay = [&](const TimedEngine& each) -> std::unique_ptr<CudaGraph> {
    try {
      return attempt(context, timing.graph + ": " + each.name(), [&] {
        context.clear(first.result().data(), first.result().bytes());
        run(each, 0);
        context.synchronize();
        return std::make_unique<CudaGraph>(context.cuda(), [&] {
          for (std::size_t i = 0; i < gpu::kTrialLaunches; ++i) run(each, i % sets.size());
        });
      });
    } catch (const DeviceError& error) {
      note(fmt::format("{}; {} is left out", error.what(), each.name()));
      return nullptr;
    }
  };
  const Memory expected = context.allocate(first.result().bytes());
  const auto count = static_cast<std::int64_t>(expected.bytes() / size_of(first.type()));
  std::vector<std::unique_ptr<CudaGraph>> replays;
  for (const TimedEngine& each : engines) {
    std::unique_ptr<CudaGraph> launches = replay(each);
    if (launches == nullptr) continue;
    GpuPlans::Timing::Engine timed{.name = each.name()};
    if (replays.empty()) {
      context.copy(expected.data(), first.result().data(), expected.bytes());
    } else {
      timed.error =
          gpu::relative_error(context, first.result().data(), expected.data(), count, first.type());
      timed.agrees = timed.error <= agreement(graph.precision());
    }
    timing.engines.push_back(std::move(timed));
    replays.push_back(std::move(launches));
  }
  if (replays.empty()) fail<DeviceError>("cuDNN: {}: no engine runs it here", timing.graph);
  const std::vector<double> times = gpu::time_replays(context, replays, repeats);
  for (std::size_t e = 0; e < times.size(); ++e) {
    GpuPlans::Timing::Engine& timed = timing.engines[e];
    timed.ms = times[e] / static_cast<double>(gpu::kTrialLaunches);
    if (timed.agrees && timed.ms < timing.engines[timing.taken].ms) timing.taken = e;
  }
  return timing;
}

}  // namespace rk
