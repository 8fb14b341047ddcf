#include "engine/device/cuda/graph.h"

#include "engine/device/cuda/error.h"

#include <cuda_runtime.h>

namespace rk {

struct CudaGraph::State {
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  std::size_t nodes = 0;

  ~State() {
    if (executable != nullptr) cudaGraphExecDestroy(executable);
    if (graph != nullptr) cudaGraphDestroy(graph);
  }
};

CudaGraph::CudaGraph(const CudaContext& cuda, const std::function<void()>& work)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.stream = cuda.stream();
  check_cuda(cudaStreamBeginCapture(s.stream, cudaStreamCaptureModeThreadLocal), "capture");
  try {
    work();
  } catch (...) {
    cudaGraph_t broken = nullptr;
    cudaStreamEndCapture(s.stream, &broken);
    if (broken != nullptr) cudaGraphDestroy(broken);
    cudaGetLastError();  // clears the failed capture's error, which the next call must not report
    throw;
  }
  check_cuda(cudaStreamEndCapture(s.stream, &s.graph), "capture");
  check_cuda(cudaGraphGetNodes(s.graph, nullptr, &s.nodes), "capture");
  check_cuda(cudaGraphInstantiate(&s.executable, s.graph, 0), "capture");
  check_cuda(cudaGraphUpload(s.executable, s.stream), "capture");
}

CudaGraph::~CudaGraph() = default;

void CudaGraph::launch() const {
  check_cuda(cudaGraphLaunch(state_->executable, state_->stream), "captured step");
}

std::size_t CudaGraph::nodes() const { return state_->nodes; }

}  // namespace rk
