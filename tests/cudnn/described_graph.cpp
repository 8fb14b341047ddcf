#include "tests/cudnn/described_graph.h"

#include "layers/graphs/build_engine.h"
#include "layers/graphs/cudnn/candidates.h"

#include <array>

namespace rk {

namespace fe = cudnn_frontend;

GpuDescription describe_gpu(int device, int compute_capability) {
  cudnn::load();
  fe::DeviceProperties properties;
  std::vector<std::uint8_t> json;
  for (fe::error_t error : {properties.set_device_id(device).build(), properties.serialize(json)}) {
    if (error.is_bad()) fail<DeviceError>("cuDNN: device {}: {}", device, error.get_message());
  }
  return {{json.begin(), json.end()}, compute_capability};
}

static std::vector<std::string> names_of(const cudnn::Candidates& candidates) {
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < candidates.count(); ++i) {
    names.push_back(candidates.name(i) + (candidates.compiles(i) ? " compiled" : ""));
  }
  return names;
}

std::vector<std::string> engines_of(const Graph& graph, const GpuDescription& gpu) {
  return names_of(cudnn::Candidates(graph, gpu.json, gpu.compute_capability));
}

std::vector<std::string> engines_at_hand(const Graph& graph) {
  cudnn::load();
  // One handle for all graphs, which lives as long as the process.
  static const cudnnHandle_t handle = [] {
    cudnnHandle_t made = nullptr;
    if (fe::detail::create_handle(&made) != CUDNN_STATUS_SUCCESS) {
      fail<DeviceError>("cuDNN: no handle");
    }
    return made;
  }();
  return names_of(cudnn::Candidates(graph, handle));
}

struct DescribedGraph::Impl {
  Impl(const Graph& graph, const GpuDescription& gpu)
      : candidates(graph, gpu.json, gpu.compute_capability) {}

  void build(bool compile) {
    std::vector<std::int64_t> to_compile;
    const std::int64_t ready = cudnn::build_first(
        candidates, [](std::int64_t) { return true; }, &to_compile);
    if (ready >= 0) return take(ready, PlanState::kFinal);
    fe::graph::Graph& graph = candidates.frontend();
    graph.select_behavior_notes({fe::BehaviorNote_t::RUNTIME_COMPILATION});
    candidates.check("engines", graph.check_support());
    if (!compile) return;
    std::string refusal;
    for (const std::int64_t i : to_compile) {
      refusal = candidates.build(i);
      if (refusal.empty()) return take(i, PlanState::kFinal);
      if (refusal.find("CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER") != std::string::npos) {
        return take(i, PlanState::kCompiled);
      }
    }
    fail<DeviceError>("cuDNN: {}: plan: {}", candidates.graph().text(), refusal);
  }

  void take(std::int64_t plan, PlanState reached) {
    state = reached;
    engine = candidates.name(plan);
    if (state == PlanState::kFinal) workspace_bytes = candidates.workspace_bytes(plan);
  }

  cudnn::Candidates candidates;
  PlanState state = PlanState::kAccepted;
  std::string engine;
  std::size_t workspace_bytes = 0;
};

DescribedGraph::DescribedGraph(const Graph& graph, const GpuDescription& gpu, bool compile)
    : impl_(std::make_unique<Impl>(graph, gpu)) {
  impl_->build(compile);
}
DescribedGraph::~DescribedGraph() = default;

PlanState DescribedGraph::state() const { return impl_->state; }
const std::string& DescribedGraph::engine() const { return impl_->engine; }
std::size_t DescribedGraph::workspace_bytes() const { return impl_->workspace_bytes; }

std::size_t DescribedGraph::places_added_by_run() const {
  cudnn::Candidates& candidates = impl_->candidates;
  cudnn::Places places = candidates.constants();
  std::array<std::byte, 1> nothing{};
  const std::vector<Graph::Tensor>& tensors = candidates.graph().tensors();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].role == GraphRole::kNone) continue;
    places[cudnn::place_of(static_cast<Graph::Value>(i))] = nothing.data();
  }
  const std::size_t given = places.size();
  // Without a handle nothing runs: the library refuses, after the frontend has done its part.
  if (candidates.run(nullptr, places, nullptr, 0).is_good()) {
    fail<DeviceError>("cuDNN: {}: ran without a handle", candidates.graph().text());
  }
  return places.size() - given;
}

}  // namespace rk
