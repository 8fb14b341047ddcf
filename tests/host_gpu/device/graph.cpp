// In place of engine/device/cuda/graph.cpp.
#include "engine/device/cuda/graph.h"

#include "tests/host_gpu/device/stream.h"

namespace rk {

struct CudaGraph::State {
  host_gpu::Work work;
};

CudaGraph::CudaGraph(const CudaContext& cuda, const std::function<void()>& work)
    : state_(std::make_unique<State>()) {
  state_->work = host_gpu::capture(cuda.stream(), work);
}

CudaGraph::~CudaGraph() = default;

void CudaGraph::launch() const {
  for (const auto& work : state_->work) work();
}

std::size_t CudaGraph::nodes() const { return state_->work.size(); }

}  // namespace rk
