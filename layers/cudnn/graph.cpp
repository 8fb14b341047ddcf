// The one file that sees cuDNN's frontend: its headers compile slowly.
#include "layers/cudnn/graph.h"

#include "engine/base/error.h"
#include "engine/base/note.h"
#include "engine/device/cuda/context.h"
#include "engine/device/cuda/graph.h"
#include "engine/driver/libraries.h"
#include "layers/cudnn/recorder.h"
#include "layers/graphs/graph_run.h"
#include "layers/graphs/trial.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>
#include <vector>

// The frontend takes every function of the library from here.
namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;
}

namespace rk {

using namespace cudnn;  // NOLINT: this file is the other half of that

namespace {

void load_cudnn() {
  static const DynamicLibrary library = load_cudnn_library(CUDNN_MAJOR, CUDART_VERSION / 1000);
  if (library.handle() == nullptr) {
    fail<DeviceError>(
        "cuDNN cannot be loaded: {}; install it, or name its folder in RK_CUDA_LIBRARIES",
        library.problem());
  }
  fe::cudnn_dlhandle = library.handle();
}

std::vector<fe::NumericalNote_t> refused_notes(Precision precision) {
  using Note = fe::NumericalNote_t;
  std::vector<Note> notes = {Note::REDUCED_PRECISION_REDUCTION, Note::NONDETERMINISTIC, Note::FFT,
                             Note::WINOGRAD};
  if (precision == Precision::kFp32) {
    notes.push_back(Note::TENSOR_CORE);
    notes.push_back(Note::DOWN_CONVERT_INPUTS);
  }
  return notes;
}

// A graph as the library knows it, with the plans of all engines that support it, most of them not
// yet built.
class Candidates {
 public:
  // For a GPU that is only described.
  Candidates(const GraphSpec& spec, const GpuDescription& gpu) : spec_(spec) {
    load_cudnn();
    auto properties = std::make_shared<fe::DeviceProperties>();
    check("device", properties->deserialize({gpu.json.begin(), gpu.json.end()}));
    graph_.set_device_properties(properties).set_sm_version(gpu.compute_capability);
    collect(nullptr);
  }
  // For the handle's.
  Candidates(const GraphSpec& spec, cudnnHandle_t handle) : spec_(spec) { collect(handle); }

  void check(const char* stage, fe::error_t error) const {
    if (error.is_good()) return;
    fail<DeviceError>("cuDNN: {}: {}: {}", spec_.text(), stage, error.get_message());
  }

  std::string name(std::int64_t plan) const {
    std::string text;
    check("name", graph_.get_plan_name_at_index(plan, text));
    return text;
  }
  std::size_t workspace_bytes(std::int64_t plan) const {
    std::int64_t bytes = 0;
    check("workspace", graph_.get_workspace_size_plan_at_index(plan, bytes));
    return static_cast<std::size_t>(bytes);
  }
  bool compiles(std::int64_t plan) const {
    std::vector<fe::BehaviorNote_t> notes;
    check("notes", graph_.get_behavior_notes_for_plan_at_index(plan, notes));
    return std::ranges::count(notes, fe::BehaviorNote_t::RUNTIME_COMPILATION) > 0;
  }

  // The first plan in the heuristics' order for which wanted(plan) and that can be built; -1 where
  // there is none. Adds those that would have to be compiled to `left`.
  template <class Wanted>
  std::int64_t first_built(Wanted&& wanted, std::vector<std::int64_t>* left) {
    for (std::int64_t i = 0; i < graph_.get_execution_plan_count(); ++i) {
      if (!wanted(i)) continue;
      if (compiles(i)) {
        left->push_back(i);
      } else if (graph_.build_plan_at_index(i).is_good()) {
        return i;
      }
    }
    return -1;
  }

  // The heuristics' first engine of those that need not be compiled, else of those that do.
  // `wanted` names one to be taken instead, where it is there.
  std::int64_t build(const std::string& wanted) {
    std::vector<std::int64_t> left;
    if (!wanted.empty()) {
      const auto named = [&](std::int64_t i) { return name(i) == wanted; };
      const std::int64_t plan = first_built(named, &left);
      if (plan >= 0) return plan;
      for (const std::int64_t i : left) {
        if (graph_.build_plan_at_index(i).is_good()) return i;
      }
      left.clear();
    }
    const std::int64_t plan = first_built([](std::int64_t) { return true; }, &left);
    if (plan >= 0) return plan;
    std::string refusal;
    for (const std::int64_t i : left) {
      fe::error_t error = graph_.build_plan_at_index(i);
      if (error.is_good()) return i;
      refusal = error.get_message();
    }
    fail<DeviceError>("cuDNN: {}: plan: {}", spec_.text(), refusal);
  }

  Graph& graph() { return graph_; }
  const GraphSpec& spec() const { return spec_; }

 private:
  void collect(cudnnHandle_t handle) {
    graph_.set_io_data_type(element_type(spec_.precision))
        .set_intermediate_data_type(Type::FLOAT)
        .set_compute_data_type(Type::FLOAT);
    Recorder(graph_, spec_).record();
    check("shapes", graph_.validate());
    check("operations", graph_.build_operation_graph(handle));
    // The second list holds engines for what the first has none for.
    check("engines", graph_.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}));
    graph_.deselect_numeric_notes(refused_notes(spec_.precision));
    check("engines", graph_.check_support());
  }

  GraphSpec spec_;
  Graph graph_;
};

// A graph with the plan that runs it.
struct BuiltGraph {
  BuiltGraph(const GraphSpec& spec, cudnnHandle_t handle, const std::string& wanted)
      : candidates(spec, handle),
        plan(candidates.build(wanted)),
        engine(candidates.name(plan)),
        workspace_bytes(candidates.workspace_bytes(plan)) {}

  Candidates candidates;
  std::int64_t plan;
  std::string engine;
  std::size_t workspace_bytes;
};

}  // namespace

// The library's handle on a context's stream, and every graph that was built there.
struct CudnnHandle {
  explicit CudnnHandle(const Context& context) {
    load_cudnn();
    check(fe::detail::create_handle(&handle), "handle");
    check(fe::detail::set_stream(handle, context.cuda().stream()), "stream");
  }
  ~CudnnHandle() { fe::detail::destroy_handle(handle); }
  CudnnHandle(const CudnnHandle&) = delete;
  CudnnHandle& operator=(const CudnnHandle&) = delete;

  static void check(cudnnStatus_t status, const char* what) {
    if (status == CUDNN_STATUS_SUCCESS) return;
    fail<DeviceError>("cuDNN: {}: {}", what, fe::detail::get_error_string(status));
  }

  // Built the first time it is asked for.
  const std::shared_ptr<BuiltGraph>& built(const GraphSpec& spec) {
    std::shared_ptr<BuiltGraph>& graph = graphs[spec];
    if (graph == nullptr) {
      graph = std::make_shared<BuiltGraph>(spec, handle, plans.engine(spec.text()));
    }
    return graph;
  }

  cudnnHandle_t handle = nullptr;
  GpuPlans plans;
  // Handles of build_graphs()'s threads.
  struct Builder {
    Builder() { check(fe::detail::create_handle(&handle), "handle"); }
    ~Builder() { fe::detail::destroy_handle(handle); }
    Builder(const Builder&) = delete;
    Builder& operator=(const Builder&) = delete;
    cudnnHandle_t handle = nullptr;
  };
  std::list<Builder> builders;
  std::map<GraphSpec, std::shared_ptr<BuiltGraph>> graphs;
  std::set<GraphSpec> refused;  // of those that exists() was asked for
};

namespace {

CudnnHandle& handle_of(const Context& context) {
  if (context.cudnn() == nullptr) context.cudnn() = std::make_shared<CudnnHandle>(context);
  return *context.cudnn();
}

// The tensors of a graph in device memory, for timing: noise, or what another one holds.
class Tensors {
 public:
  Tensors(const Context& context, const GraphSpec& spec, const Tensors* other = nullptr) {
    for (const GraphTensor& tensor : tensors_of(spec)) {
      memory_.push_back(
          context.allocate(static_cast<std::size_t>(tensor.elements) * size_of(tensor.type)));
      places_[Recorder::uid(tensor.role)] = memory_.back().data();
      if (!tensor.written && other != nullptr) {
        const Memory& from = other->memory_[memory_.size() - 1];
        context.cuda().copy(memory_.back().data(), from.data(), from.bytes());
      } else if (!tensor.written) {
        gpu::fill_with_noise(context, memory_.back().data(), tensor.elements, tensor.type,
                             static_cast<std::uint32_t>(tensor.role));
      }
      // The largest that is written says most about the arithmetic.
      if (tensor.written && (result_ < 0 || memory_.back().bytes() > result().bytes())) {
        result_ = static_cast<int>(memory_.size()) - 1;
        type_ = tensor.type;
      }
    }
    Recorder::add_constants(spec.kind, places_);
  }

  std::unordered_map<std::int64_t, void*>& places() { return places_; }
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
  std::unordered_map<std::int64_t, void*> places_;
  int result_ = -1;
  DType type_{};
};

}  // namespace

GpuDescription describe_gpu(int device, int compute_capability) {
  load_cudnn();
  fe::DeviceProperties properties;
  std::vector<std::uint8_t> json;
  for (fe::error_t error : {properties.set_device_id(device).build(), properties.serialize(json)}) {
    if (error.is_bad()) fail<DeviceError>("cuDNN: device {}: {}", device, error.get_message());
  }
  return {{json.begin(), json.end()}, compute_capability};
}

struct CudnnGraph::Impl {
  Impl(const GraphSpec& spec, const GpuDescription& gpu) : candidates(spec, gpu) {}

  void build(const Options& options) {
    std::vector<std::int64_t> to_compile;
    const std::int64_t ready =
        candidates.first_built([](std::int64_t) { return true; }, &to_compile);
    if (ready >= 0) return take(ready, PlanState::kFinal);
    Graph& graph = candidates.graph();
    graph.select_behavior_notes({fe::BehaviorNote_t::RUNTIME_COMPILATION});
    candidates.check("engines", graph.check_support());
    if (!options.compile) return;
    std::string refusal;
    for (const std::int64_t i : to_compile) {
      fe::error_t error = graph.build_plan_at_index(i);
      if (error.is_good()) return take(i, PlanState::kFinal);
      refusal = error.get_message();
      if (refusal.find("CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER") != std::string::npos) {
        return take(i, PlanState::kCompiled);
      }
    }
    fail<DeviceError>("cuDNN: {}: plan: {}", candidates.spec().text(), refusal);
  }

  std::size_t places_added_by_run() {
    std::unordered_map<std::int64_t, void*> places;
    std::array<std::byte, 1> nothing{};
    for (const GraphTensor& tensor : tensors_of(candidates.spec())) {
      places[Recorder::uid(tensor.role)] = nothing.data();
    }
    Recorder::add_constants(candidates.spec().kind, places);
    const std::size_t given = places.size();
    // Without a handle nothing runs: the library refuses, after the frontend has done its part.
    if (candidates.graph().execute_plan_at_index(nullptr, places, nullptr, 0).is_good()) {
      fail<DeviceError>("cuDNN: {}: ran without a handle", candidates.spec().text());
    }
    return places.size() - given;
  }

  void take(std::int64_t plan, PlanState reached) {
    state = reached;
    engine = candidates.name(plan);
    if (state == PlanState::kFinal) workspace_bytes = candidates.workspace_bytes(plan);
  }

  Candidates candidates;
  PlanState state = PlanState::kAccepted;
  std::string engine;
  std::size_t workspace_bytes = 0;
};

CudnnGraph::CudnnGraph(const GraphSpec& spec, const GpuDescription& gpu, Options options)
    : impl_(std::make_unique<Impl>(spec, gpu)) {
  impl_->build(options);
}
CudnnGraph::~CudnnGraph() = default;
CudnnGraph::CudnnGraph(CudnnGraph&&) noexcept = default;

PlanState CudnnGraph::state() const { return impl_->state; }
const std::string& CudnnGraph::engine() const { return impl_->engine; }
std::size_t CudnnGraph::workspace_bytes() const { return impl_->workspace_bytes; }
std::size_t CudnnGraph::places_added_by_run() const { return impl_->places_added_by_run(); }

struct GpuGraph::Impl {
  std::shared_ptr<CudnnHandle> cudnn;
  std::shared_ptr<BuiltGraph> built;
  // The frontend takes a map; filled once, so that a step makes none.
  std::unordered_map<std::int64_t, void*> places;
  void* workspace = nullptr;
};

GpuGraph::GpuGraph(const Context& context, const GraphSpec& spec)
    : impl_(std::make_unique<Impl>()) {
  impl_->built = handle_of(context).built(spec);
  impl_->cudnn = context.cudnn();
}

bool GpuGraph::exists(const Context& context, const GraphSpec& spec) {
  CudnnHandle& cudnn = handle_of(context);
  if (cudnn.refused.contains(spec)) return false;
  try {
    cudnn.built(spec);
    return true;
  } catch (const DeviceError& error) {
    note(fmt::format("{}; our own kernels take its place", error.what()));
    cudnn.refused.insert(spec);
    return false;
  }
}

GpuGraph::GpuGraph() = default;
GpuGraph::~GpuGraph() = default;
GpuGraph::GpuGraph(GpuGraph&&) noexcept = default;
GpuGraph& GpuGraph::operator=(GpuGraph&&) noexcept = default;

std::size_t GpuGraph::workspace_bytes() const { return impl_->built->workspace_bytes; }
const std::string& GpuGraph::engine() const { return impl_->built->engine; }

void GpuGraph::bind(std::initializer_list<Place> places, void* workspace) {
  const GraphSpec& spec = impl_->built->candidates.spec();
  impl_->places.clear();
  for (const GraphTensor& tensor : tensors_of(spec)) {
    const auto* place = std::ranges::find(places, tensor.role, &Place::role);
    expect(place != places.end() && place->data != nullptr, "[gpu graph] {} lacks tensor {}",
           spec.text(), static_cast<int>(tensor.role));
    impl_->places[Recorder::uid(tensor.role)] = const_cast<void*>(place->data);
  }
  Recorder::add_constants(spec.kind, impl_->places);
  impl_->workspace = workspace;
}

void GpuGraph::run() const {
  const Candidates& candidates = impl_->built->candidates;
  candidates.check("run",
                   impl_->built->candidates.graph().execute_plan_at_index(
                       impl_->cudnn->handle, impl_->places, impl_->workspace, impl_->built->plan));
}

void build_graphs(const Context& context, const std::vector<GraphSpec>& graphs,
                  const std::function<void(std::int64_t, std::int64_t)>& progress) {
  CudnnHandle& cudnn = handle_of(context);
  std::vector<GraphSpec> wanted;
  for (const GraphSpec& spec : graphs) {
    const std::string engine = cudnn.plans.engine(spec.text());
    const bool left_out = engine == GpuPlans::kOwnKernels ||
                          (engine.empty() && spec.kind == GraphKind::kConvolutionSums);
    if (!left_out && !cudnn.graphs.contains(spec)) wanted.push_back(spec);
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
      // A plan may look at the handle it was built with: it stays as long as the plans do.
      CudnnHandle::Builder& builder = cudnn.builders.emplace_back();
      while (next < wanted.size() && broken == nullptr) {
        const GraphSpec& spec = wanted[next++];
        const std::string engine = cudnn.plans.engine(spec.text());
        std::shared_ptr<BuiltGraph> graph;
        lock.unlock();
        try {
          graph = std::make_shared<BuiltGraph>(spec, builder.handle, engine);
        } catch (const DeviceError&) {
          // Said when a node asks for it.
        }
        lock.lock();
        if (graph != nullptr) cudnn.graphs[spec] = std::move(graph);
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
  while (done < all && broken == nullptr) {
    built.wait(lock);
    if (progress) progress(done, all);
  }
  lock.unlock();
  threads.clear();
  if (broken != nullptr) std::rethrow_exception(broken);
}

void set_plans(const Context& context, const GpuPlans& plans) {
  if (plans.environment() != plan_environment(context)) return;
  CudnnHandle& cudnn = handle_of(context);
  cudnn.plans = plans;
  // What was built on another engine than is now asked for is built again for who asks next; nodes
  // keep theirs.
  std::erase_if(cudnn.graphs, [&](const auto& entry) {
    return entry.second == nullptr || !cudnn.plans.engine(entry.first.text()).empty();
  });
}

const GpuPlans& plans_of(const Context& context) { return handle_of(context).plans; }

std::string plan_environment(const Context& context) {
  load_cudnn();
  return fmt::format("{}, cuDNN {}", context.cuda().name(), fe::detail::get_backend_version());
}

GpuPlans::Timing time_engines(const Context& context, const GraphSpec& spec, int repeats) {
  // In the order of the library's own estimate; each loads kernels of its own, which takes longer
  // than running them.
  constexpr std::size_t kMostReady = 16;
  constexpr std::size_t kMostCompiled = 3;
  CudnnHandle& cudnn = handle_of(context);
  Candidates candidates(spec, cudnn.handle);
  GpuPlans::Timing timing{.graph = spec.text(), .engines = {}, .taken = 0};
  std::vector<std::int64_t> plans;
  std::size_t largest = 0;
  // Engines that are compiled take up to a second each: the first few, where there are no others.
  for (const bool compiled : {false, true}) {
    for (std::int64_t i = 0; i < candidates.graph().get_execution_plan_count(); ++i) {
      if (plans.size() >= (compiled ? kMostCompiled : kMostReady)) break;
      if (candidates.compiles(i) != compiled) continue;
      if (candidates.graph().build_plan_at_index(i).is_bad()) continue;
      plans.push_back(i);
      timing.engines.push_back({.name = candidates.name(i)});
      largest = std::max(largest, candidates.workspace_bytes(i));
    }
    if (!plans.empty()) break;
  }
  if (plans.empty()) fail<DeviceError>("cuDNN: {}: no engine runs it here", spec.text());
  const Memory workspace = context.allocate(largest);
  std::vector<Tensors> sets;
  sets.reserve(gpu::kTrialLaunches);
  sets.emplace_back(context, spec);
  while (sets.size() < gpu::kTrialLaunches && sets.size() * sets[0].bytes() < gpu::kBeyondCaches) {
    sets.emplace_back(context, spec, &sets[0]);
  }
  const auto run = [&](std::size_t engine, std::size_t set) {
    candidates.check("run", candidates.graph().execute_plan_at_index(
                                cudnn.handle, sets[set].places(), workspace.data(), plans[engine]));
  };
  const Tensors& first = sets[0];
  const Memory expected = context.allocate(first.result().bytes());
  const auto count = static_cast<std::int64_t>(expected.bytes() / size_of(first.type()));
  std::vector<std::unique_ptr<CudaGraph>> replays;
  for (std::size_t e = 0; e < plans.size(); ++e) {
    run(e, 0);
    if (e == 0) {
      context.cuda().copy(expected.data(), first.result().data(), expected.bytes());
    } else {
      timing.engines[e].error =
          gpu::largest_error(context, first.result().data(), expected.data(), count, first.type());
      timing.engines[e].agrees = timing.engines[e].error <= agreement(spec.precision);
    }
    replays.push_back(std::make_unique<CudaGraph>(context.cuda(), [&] {
      for (std::size_t i = 0; i < gpu::kTrialLaunches; ++i) run(e, i % sets.size());
    }));
  }
  const std::vector<double> times = gpu::time_replays(context, replays, repeats);
  for (std::size_t e = 0; e < plans.size(); ++e) {
    timing.engines[e].ms = times[e] / static_cast<double>(gpu::kTrialLaunches);
    if (timing.engines[e].agrees && timing.engines[e].ms < timing.engines[timing.taken].ms) {
      timing.taken = e;
    }
  }
  return timing;
}

}  // namespace rk
