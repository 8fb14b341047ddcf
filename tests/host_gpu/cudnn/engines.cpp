// In place of layers/graphs/cudnn/engines.cpp. Stricter than cuDNN about a run's tensors: each must
// lie in device memory as a whole, and none where a result goes.
#include "tests/host_gpu/cudnn/engines.h"

#include "engine/base/error.h"
#include "layers/graphs/engines.h"
#include "tests/host_gpu/cuda/device.h"
#include "tests/host_gpu/cuda/memory.h"
#include "tests/host_gpu/cuda/stream.h"
#include "tests/host_gpu/cudnn/graph_loops.h"

#include <mutex>
#include <utility>

namespace rk {
namespace {

using host_gpu::HostEngine;

constexpr std::size_t kWorkspaceBytes = 64;

std::function<std::vector<HostEngine>(const Graph&)>& offered() {
  static std::function<std::vector<HostEngine>(const Graph&)> engines;
  return engines;
}

// Several threads build at the same time.
struct Log {
  std::mutex mutex;
  std::vector<Graph> built;
};
Log& log() {
  static Log held;
  return held;
}

// No other tensor may lie where a result does, except that the advanced running statistics may
// overwrite the old ones.
void check_places(const Graph& graph, const std::vector<void*>& places) {
  const std::vector<Graph::Tensor>& tensors = graph.tensors();
  const auto in_place = [](GraphRole role, GraphRole result) {
    return (role == GraphRole::kRunningMean && result == GraphRole::kNextMean) ||
           (role == GraphRole::kRunningVariance && result == GraphRole::kNextVariance);
  };
  // Ranges of a larger tensor's channels interleave, so only their starts are compared.
  const auto overlap = [&](std::size_t a, std::size_t b) {
    const auto* first = static_cast<const std::byte*>(places[a]);
    const auto* second = static_cast<const std::byte*>(places[b]);
    if (first == nullptr || second == nullptr) return false;
    if (tensors[a].row_stride > 0 || tensors[b].row_stride > 0) return first == second;
    return first < second + tensors[b].bytes() && second < first + tensors[a].bytes();
  };
  for (std::size_t r = 0; r < tensors.size(); ++r) {
    if (places[r] == nullptr) continue;
    host_gpu::expect_kind(host_gpu::Kind::kDevice, places[r], tensors[r].bytes(),
                          "a graph's tensor");
    for (std::size_t i = 0; tensors[r].written && i < tensors.size(); ++i) {
      expect(i == r || !overlap(i, r) || in_place(tensors[i].role, tensors[r].role),
             "[gpu graph] {}: {} lies where {} goes", graph.text(), name_of(tensors[i].role),
             name_of(tensors[r].role));
    }
  }
}

}  // namespace

namespace host_gpu {

void offer_engines(std::function<std::vector<HostEngine>(const Graph&)> engines) {
  offered() = std::move(engines);
}
void refuse_graphs(const std::function<bool(const Graph&)>& graphs) {
  if (!graphs) return offer_engines(nullptr);
  offer_engines(
      [graphs](const Graph& graph) { return std::vector<HostEngine>(graphs(graph) ? 0 : 1); });
}
const std::vector<Graph>& graphs_built() { return log().built; }
void forget_graphs() { log().built.clear(); }

}  // namespace host_gpu

namespace cudnn {

std::string version() { return "of the host"; }

struct Handle::State {
  CudaStream stream;
};
Handle::Handle(CudaStream stream) : state_(std::make_unique<State>(State{stream})) {}
Handle::~Handle() = default;

struct Engines::State {
  Graph graph;
  std::vector<HostEngine> engines;
  std::vector<char> built;

  const HostEngine& at(std::int64_t engine) const {
    return engines.at(static_cast<std::size_t>(engine));
  }
};

Engines::Engines(const Graph& graph, const Handle&) {
  if (host_gpu::break_capture()) fail<DeviceError>("[gpu graph] planned in a capture");
  std::vector<HostEngine> engines{{}};
  if (offered()) engines = offered()(graph);
  if (engines.empty()) fail<DeviceError>("cuDNN: {}: engines: none", graph.text());
  std::vector<char> built(engines.size());
  state_ = std::make_unique<State>(State{graph, std::move(engines), std::move(built)});
}
Engines::~Engines() = default;

const Graph& Engines::graph() const { return state_->graph; }
std::int64_t Engines::count() const { return std::ssize(state_->engines); }
std::string Engines::name(std::int64_t engine) const { return state_->at(engine).name; }
bool Engines::compiles(std::int64_t engine) const { return state_->at(engine).compiles; }
std::string Engines::build(std::int64_t engine) {
  const std::string& refusal = state_->at(engine).not_built;
  if (refusal.empty()) {
    state_->built[static_cast<std::size_t>(engine)] = 1;
    const std::lock_guard lock(log().mutex);
    log().built.push_back(graph());
  }
  return refusal;
}
std::size_t Engines::workspace_bytes(std::int64_t engine) const {
  return kWorkspaceBytes * static_cast<std::size_t>(engine + 1);
}

void Engines::run(const Handle& handle, Places& places, void* workspace, std::int64_t engine) {
  const HostEngine& with = state_->at(engine);
  expect(state_->built[static_cast<std::size_t>(engine)] != 0, "[gpu graph] {} was not built",
         with.name);
  if (with.faults) host_gpu::fault(true);
  if (!with.not_run.empty()) fail<DeviceError>("cuDNN: {}: run: {}", graph().text(), with.not_run);
  const std::vector<Graph::Tensor>& tensors = graph().tensors();
  std::vector<void*> of_tensors(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].role != GraphRole::kNone) {
      of_tensors[i] = places.at(place_of(static_cast<Graph::Value>(i)));
    }
  }
  check_places(graph(), of_tensors);
  host_gpu::expect_kind(host_gpu::Kind::kDevice, workspace, workspace_bytes(engine), "workspace");
  const auto work = [graph = graph(), of_tensors, workspace, bytes = workspace_bytes(engine),
                     passes = with.passes, factor = with.factor] {
    host_gpu::fill_with_nan(workspace, bytes);
    for (int pass = 0; pass < passes; ++pass) host_gpu::compute(graph, of_tensors, factor);
  };
  host_gpu::put(handle.state().stream, graph().text() + with.name, work);
}

Places Engines::constants() { return {}; }

}  // namespace cudnn
}  // namespace rk
