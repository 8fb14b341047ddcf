#include "layers/graphs/graph_runner.h"

#include "engine/base/error.h"
#include "engine/base/note.h"
#include "engine/device/cuda/context.h"
#include "engine/device/cuda/graph.h"
#include "layers/graphs/build_engine.h"
#include "layers/graphs/engines.h"
#include "layers/graphs/trial.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <future>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

namespace rk {

using cudnn::Engines;
using cudnn::Handle;

namespace {

// A graph with the engine that runs it.
struct BuiltGraph {
  BuiltGraph(const Graph& graph, const Handle& handle, const std::string& asked_for)
      : engines(graph, handle),
        engine(cudnn::build_engine(engines, asked_for)),
        name(engines.name(engine)),
        workspace_bytes(engines.workspace_bytes(engine)) {}

  Engines engines;
  std::int64_t engine;
  std::string name;
  std::size_t workspace_bytes;
};

}  // namespace

// A context's cuDNN state: the plan table and, once the first graph is requested, the library's
// handle on the context's stream and all graphs built for it.
struct CudnnHandle {
  const Handle& on(const Context& context) {
    expect(context.on_gpu(), "[gpu graph] expected a GPU");
    if (!handle) handle.emplace(context.cuda().stream());
    return *handle;
  }
  // A graph's text and the engine that the plan table names; no engine: the heuristics' first.
  using Key = std::pair<std::string, std::string>;
  Key key(const Graph& graph) const {
    const std::string text = graph.text();
    return {text, plans.engine_to_build(text)};
  }
  // Builds the graph at the first request.
  const std::shared_ptr<BuiltGraph>& built(const Context& context, const Graph& graph) {
    const Key wanted = key(graph);
    auto kept = graphs.find(wanted);
    if (kept == graphs.end()) {
      auto made = std::make_shared<BuiltGraph>(graph, on(context), wanted.second);
      kept = graphs.emplace(wanted, std::move(made)).first;
    }
    return kept->second;
  }

  GpuPlans plans;
  std::optional<Handle> handle;
  std::list<Handle> builders;  // the handles of build_graphs()'s threads
  std::map<Key, std::shared_ptr<BuiltGraph>> graphs;
  std::set<std::string> refused;  // texts of graphs that exists() found missing
};

namespace {

CudnnHandle& handle_of(const Context& context) {
  if (context.cudnn() == nullptr) context.cudnn() = std::make_shared<CudnnHandle>();
  return *context.cudnn();
}

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
        context.cuda().copy(memory_.back().data(), from.data(), from.bytes());
      } else if (!tensor.written) {
        const std::size_t count = tensor.bytes() / size_of(tensor.type);
        gpu::fill_with_noise(context, memory_.back().data(), static_cast<std::int64_t>(count),
                             tensor.type, static_cast<std::uint32_t>(tensor.role));
      } else if (tensor.row_stride > 0) {
        // The gaps between its rows are compared with another run's as well.
        context.clear(memory_.back().data(), memory_.back().bytes());
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
  const Memory& result() const { return memory_[static_cast<std::size_t>(result_)]; }
  DType type() const { return type_; }

 private:
  std::vector<Memory> memory_;
  cudnn::Places places_;
  int result_ = -1;
  DType type_{};
};

}  // namespace

struct GraphRunner::Impl {
  std::shared_ptr<CudnnHandle> cudnn;
  std::shared_ptr<BuiltGraph> built;
  // Filled once, so that a step builds no map.
  cudnn::Places places;
  void* workspace = nullptr;
};

GraphRunner::GraphRunner(const Context& context, const Graph& graph)
    : impl_(std::make_unique<Impl>()) {
  impl_->built = handle_of(context).built(context, graph);
  impl_->cudnn = context.cudnn();
}

bool GraphRunner::exists(const Context& context, const Graph& graph, const char* otherwise) {
  CudnnHandle& cudnn = handle_of(context);
  const std::string text = graph.text();
  if (cudnn.refused.contains(text)) return false;
  cudnn.on(context);  // without the library nothing could happen instead
  try {
    cudnn.built(context, graph);
    return true;
  } catch (const DeviceError& error) {
    note(fmt::format("{}; {}", error.what(), otherwise));
    cudnn.refused.insert(text);
    return false;
  }
}

GraphRunner::GraphRunner() = default;
GraphRunner::~GraphRunner() = default;
GraphRunner::GraphRunner(GraphRunner&&) noexcept = default;
GraphRunner& GraphRunner::operator=(GraphRunner&&) noexcept = default;

std::size_t GraphRunner::workspace_bytes() const { return impl_->built->workspace_bytes; }
const std::string& GraphRunner::engine() const { return impl_->built->name; }

void GraphRunner::bind(const std::vector<Place>& places, void* workspace) {
  const Graph& graph = impl_->built->engines.graph();
  impl_->places = impl_->built->engines.constants();
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    const GraphRole role = graph.tensors()[i].role;
    if (role == GraphRole::kNone) continue;
    const auto place = std::ranges::find(places, role, &Place::role);
    expect(place != places.end() && place->data != nullptr, "[gpu graph] {} lacks {}", graph.text(),
           name_of(role));
    impl_->places[cudnn::place_of(static_cast<Graph::Value>(i))] = const_cast<void*>(place->data);
  }
  impl_->workspace = workspace;
}

void GraphRunner::run() const {
  BuiltGraph& built = *impl_->built;
  built.engines.run(*impl_->cudnn->handle, impl_->places, impl_->workspace, built.engine);
}

void build_graphs(const Context& context, const std::vector<Graph>& graphs,
                  const std::function<void(std::int64_t, std::int64_t)>& progress) {
  CudnnHandle& cudnn = handle_of(context);
  cudnn.on(context);
  std::vector<const Graph*> wanted;
  for (const Graph& graph : graphs) {
    if (!cudnn.graphs.contains(cudnn.key(graph))) wanted.push_back(&graph);
  }
  const auto all = std::ssize(wanted);
  std::mutex mutex;
  std::condition_variable built;
  std::size_t next = 0;
  std::int64_t done = 0;
  std::exception_ptr broken;
  const auto work = [&] {
    std::unique_lock lock(mutex);
    try {
      context.cuda().use_in_this_thread();
      // A plan may use the handle it was built with, so the handle lives as long as the plans.
      const Handle& builder = cudnn.builders.emplace_back(nullptr);
      while (next < wanted.size() && broken == nullptr) {
        const Graph& wants = *wanted[next++];
        const CudnnHandle::Key key = cudnn.key(wants);
        std::shared_ptr<BuiltGraph> graph;
        lock.unlock();
        try {
          graph = std::make_shared<BuiltGraph>(wants, builder, key.second);
        } catch (const DeviceError&) {
          // Reported when a node asks for the graph.
        }
        lock.lock();
        if (graph != nullptr) cudnn.graphs[key] = std::move(graph);
        ++done;
        built.notify_one();
      }
    } catch (...) {
      if (!lock.owns_lock()) lock.lock();
      broken = std::current_exception();
      built.notify_one();
    }
  };
  std::vector<std::jthread> threads;
  for (std::int64_t t = 0; t < std::min<std::int64_t>(context.threads(), all); ++t) {
    threads.emplace_back(work);
  }
  std::unique_lock lock(mutex);
  for (std::int64_t told = 0; broken == nullptr;) {
    if (progress && done > told) progress(done, all);
    told = done;
    if (done == all) break;
    built.wait(lock);
  }
  lock.unlock();
  threads.clear();
  if (broken != nullptr) std::rethrow_exception(broken);
}

void set_plans(const Context& context, const GpuPlans& plans) {
  const std::string environment = plan_environment(context);
  if (plans.environment() != environment) {
    if (!plans.empty()) {
      note(fmt::format("the plans are of {}, this is {}: none of them is used", plans.environment(),
                       environment));
    }
    return;
  }
  handle_of(context).plans = plans;
}

const GpuPlans& plans_of(const Context& context) { return handle_of(context).plans; }

PlansTaken plans_taken(const Context& context) {
  PlansTaken of;
  const CudnnHandle& cudnn = handle_of(context);
  for (const auto& [key, graph] : cudnn.graphs) {
    const auto& [text, engine] = key;
    if (engine.empty() || engine != cudnn.plans.engine_to_build(text)) continue;
    ++of.named;
    if (graph->name == engine) ++of.taken;
  }
  return of;
}

std::string plan_environment(const Context& context) {
  if (!context.on_gpu()) return "";
  return fmt::format("{}, cuDNN {}", context.cuda().name(), cudnn::version());
}

namespace {

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
  const auto all = std::make_shared<Engines>(graph, handle_of(context).on(context));
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
  const Handle& handle = handle_of(context).on(context);
  GpuPlans::Timing timing{.graph = graph.text(), .engines = {}, .taken = 0};
  std::vector<TimedEngine> engines = engines_worth_timing(context, graph);
  if (engines.empty()) fail<DeviceError>("cuDNN: {}: no engine runs it here", timing.graph);
  std::size_t largest = 0;
  for (const TimedEngine& each : engines) {
    timing.engines.push_back({.name = each.name()});
    largest = std::max(largest, each.engines->workspace_bytes(each.engine));
  }
  const Memory workspace = context.allocate(largest);
  // All engines read the constants of the first one's graph; kept, since the first may be erased.
  const std::shared_ptr<Engines> constants = engines[0].engines;
  std::vector<Tensors> sets;
  sets.reserve(gpu::kTrialLaunches);
  sets.emplace_back(context, *constants);
  while (sets.size() < gpu::kTrialLaunches && sets.size() * sets[0].bytes() < gpu::kBeyondCaches) {
    sets.emplace_back(context, *constants, &sets[0]);
  }
  const auto run = [&](std::size_t e, std::size_t set) {
    engines[e].engines->run(handle, sets[set].places(), workspace.data(), engines[e].engine);
  };
  const Tensors& first = sets[0];
  // Runs an engine once, then captures its launches for timing; null if it cannot run or cannot be
  // captured. The result of the engine before it must not be taken for its own.
  const auto replay = [&](std::size_t e) -> std::unique_ptr<CudaGraph> {
    try {
      context.clear(first.result().data(), first.result().bytes());
      run(e, 0);
      context.synchronize();
      return std::make_unique<CudaGraph>(context.cuda(), [&] {
        for (std::size_t i = 0; i < gpu::kTrialLaunches; ++i) run(e, i % sets.size());
      });
    } catch (const DeviceError& error) {
      note(fmt::format("{}; {} is left out", error.what(), timing.engines[e].name));
      return nullptr;
    }
  };
  const Memory expected = context.allocate(first.result().bytes());
  const auto count = static_cast<std::int64_t>(expected.bytes() / size_of(first.type()));
  std::vector<std::unique_ptr<CudaGraph>> replays;
  while (replays.size() < engines.size()) {
    const std::size_t e = replays.size();
    std::unique_ptr<CudaGraph> launches = replay(e);
    if (launches == nullptr) {
      engines.erase(engines.begin() + static_cast<std::ptrdiff_t>(e));
      timing.engines.erase(timing.engines.begin() + static_cast<std::ptrdiff_t>(e));
      continue;
    }
    if (e == 0) {
      context.cuda().copy(expected.data(), first.result().data(), expected.bytes());
    } else {
      timing.engines[e].error =
          gpu::largest_error(context, first.result().data(), expected.data(), count, first.type());
      timing.engines[e].agrees = timing.engines[e].error <= agreement(graph.precision());
    }
    replays.push_back(std::move(launches));
  }
  if (engines.empty()) fail<DeviceError>("cuDNN: {}: no engine runs it here", timing.graph);
  const std::vector<double> times = gpu::time_replays(context, replays, repeats);
  for (std::size_t e = 0; e < engines.size(); ++e) {
    timing.engines[e].ms = times[e] / static_cast<double>(gpu::kTrialLaunches);
    if (timing.engines[e].agrees && timing.engines[e].ms < timing.engines[timing.taken].ms) {
      timing.taken = e;
    }
  }
  return timing;
}

}  // namespace rk
