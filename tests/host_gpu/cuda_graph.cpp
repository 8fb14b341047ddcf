// In place of engine/cuda_graph_cuda.cpp: work is kept and called again. What a replay would not
// do, run the host's part of it, is done here every time; tests count on device memory alone.
#include "engine/cuda_graph.h"

#include "tests/host_gpu/memory.h"

#include <utility>

namespace rk {

struct CudaGraph::State {
  std::function<void()> work;
};

CudaGraph::CudaGraph(const CudaContext&, const std::function<void()>& work)
    : state_(std::make_unique<State>()) {
  state_->work = work;
}

CudaGraph::~CudaGraph() = default;

void CudaGraph::launch() const {
  const struct Capture {
    Capture() { host_gpu::set_capturing(true); }
    ~Capture() { host_gpu::set_capturing(false); }
  } capture;
  state_->work();
}

std::size_t CudaGraph::nodes() const { return 1; }

}  // namespace rk
