#include "layers/graphs/graph_runner.h"

#include "engine/base/error.h"
#include "engine/base/note.h"
#include "engine/device/carver.h"
#include "engine/device/cuda/context.h"
#include "layers/graphs/attempt.h"
#include "layers/graphs/build_engine.h"
#include "layers/graphs/cudnn_handle.h"
#include "layers/graphs/engines.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
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
  bool tried = false;  // whether it ran once
};

// Runs a graph once, on zeros: what a driver cannot load of a compiled graph, it refuses only then.
// Without memory for it the graph remains untried.
void try_out(const Context& context, const Handle& handle, BuiltGraph& built) {
  const std::vector<Graph::Tensor>& tensors = built.engines.graph().tensors();
  cudnn::Places places = built.engines.constants();
  const auto carve = [&](Carver memory) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].role == GraphRole::kNone) continue;
      places[cudnn::place_of(static_cast<Graph::Value>(i))] =
          memory.take<std::byte>(static_cast<std::int64_t>(tensors[i].bytes()));
    }
    return memory;
  };
  Memory memory;
  try {
    memory = context.allocate(carve(Carver()).used() + built.workspace_bytes);
  } catch (const DeviceError&) {
    context.synchronize();  // a GPU that failed refuses memory, too
    return;
  }
  context.clear(memory.data(), memory.bytes());
  void* workspace = carve(Carver(memory.data())).rest();
  built.engines.run(handle, places, workspace, built.engine);
  context.synchronize();
  built.tried = true;
}

}  // namespace

// What a context keeps of graphs: the plan table and, once the first graph is requested, the
// library's handle on the context's stream and all graphs built for it.
struct GraphCache {
  const Handle& on(const Context& context) {
    expect(context.on_gpu(), "[gpu graph] expected a GPU");
    if (!handle) handle.emplace(context.stream());
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

GraphCache& cache_of(const Context& context) {
  if (context.graph_cache() == nullptr) context.graph_cache() = std::make_shared<GraphCache>();
  return *context.graph_cache();
}

}  // namespace

const Handle& cudnn_handle(const Context& context) { return cache_of(context).on(context); }

struct GraphRunner::Impl {
  std::shared_ptr<GraphCache> cache;
  std::shared_ptr<BuiltGraph> built;
  // Filled once, so that a step builds no map.
  cudnn::Places places;
  void* workspace = nullptr;
};

GraphRunner::GraphRunner(const Context& context, const Graph& graph)
    : impl_(std::make_unique<Impl>()) {
  impl_->built = cache_of(context).built(context, graph);
  impl_->cache = context.graph_cache();
}

bool GraphRunner::exists(const Context& context, const Graph& graph, const char* otherwise) {
  GraphCache& cache = cache_of(context);
  const std::string text = graph.text();
  if (cache.refused.contains(text)) return false;
  const Handle& handle = cache.on(context);  // without the library nothing could happen instead
  try {
    attempt(context, text, [&] {
      BuiltGraph& built = *cache.built(context, graph);
      if (!built.tried) try_out(context, handle, built);
    });
    return true;
  } catch (const DeviceError& error) {
    note(fmt::format("{}; {}", error.what(), otherwise));
    cache.refused.insert(text);
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
  built.engines.run(*impl_->cache->handle, impl_->places, impl_->workspace, built.engine);
}

void build_graphs(const Context& context, const std::vector<Graph>& graphs,
                  const std::function<void(std::int64_t, std::int64_t)>& progress) {
  GraphCache& cache = cache_of(context);
  cache.on(context);
  std::vector<const Graph*> wanted;
  for (const Graph& graph : graphs) {
    if (!cache.graphs.contains(cache.key(graph))) wanted.push_back(&graph);
  }
  if (wanted.empty()) return;
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
      const Handle& builder = cache.builders.emplace_back(nullptr);
      while (next < wanted.size() && broken == nullptr) {
        const Graph& wants = *wanted[next++];
        const GraphCache::Key key = cache.key(wants);
        std::shared_ptr<BuiltGraph> graph;
        lock.unlock();
        try {
          graph = std::make_shared<BuiltGraph>(wants, builder, key.second);
        } catch (const DeviceError&) {
          // Reported when a node asks for the graph.
        }
        lock.lock();
        if (graph != nullptr) cache.graphs[key] = std::move(graph);
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
  while (broken == nullptr) {
    try {
      if (progress) progress(done, all);
    } catch (...) {
      broken = std::current_exception();
    }
    if (done == all) break;
    built.wait_for(lock, std::chrono::milliseconds(100));
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
  cache_of(context).plans = plans;
}

const GpuPlans& plans_of(const Context& context) { return cache_of(context).plans; }

PlansTaken plans_taken(const Context& context) {
  PlansTaken of;
  const GraphCache& cache = cache_of(context);
  for (const auto& [key, graph] : cache.graphs) {
    const auto& [text, engine] = key;
    if (engine.empty() || engine != cache.plans.engine_to_build(text)) continue;
    ++of.named;
    if (graph->name == engine) ++of.taken;
  }
  return of;
}

std::string plan_environment(const Context& context) {
  if (!context.on_gpu()) return "";
  return fmt::format("{}, cuDNN {}", context.gpu_name(), cudnn::version());
}

}  // namespace rk
