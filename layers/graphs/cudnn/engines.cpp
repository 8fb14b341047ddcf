// The product's only source file that includes cuDNN's frontend (layers/graphs/cudnn/candidates.h).
#include "layers/graphs/engines.h"

#include "engine/base/error.h"
#include "engine/driver/libraries.h"
#include "engine/driver/required_library.h"
#include "layers/graphs/cudnn/candidates.h"

#include <cuda_runtime_api.h>

// The frontend loads every function of the library through this handle.
namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;
}

namespace rk::cudnn {

void load() {
  static const RequiredLibrary required("cuDNN",
                                        load_cudnn_library(CUDNN_MAJOR, CUDART_VERSION / 1000),
                                        "install it, or name its folder in RK_CUDA_LIBRARIES");
  fe::cudnn_dlhandle = required.library().handle();
}

std::string version() {
  load();
  return fmt::format("{}", fe::detail::get_backend_version());
}

namespace {

void check(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  fail<DeviceError>("cuDNN: {}: {}", what, fe::detail::get_error_string(status));
}

}  // namespace

struct Handle::State {
  cudnnHandle_t handle = nullptr;
  ~State() {
    if (handle != nullptr) fe::detail::destroy_handle(handle);
  }
};

Handle::Handle(CudaStream stream) : state_(std::make_unique<State>()) {
  load();
  check(fe::detail::create_handle(&state_->handle), "handle");
  check(fe::detail::set_stream(state_->handle, stream), "stream");
}
Handle::~Handle() = default;

struct Engines::State {
  State(const Graph& graph, cudnnHandle_t handle) : candidates(graph, handle) {}
  Candidates candidates;
};

Engines::Engines(const Graph& graph, const Handle& handle)
    : state_(std::make_unique<State>(graph, handle.state().handle)) {}
Engines::~Engines() = default;

const Graph& Engines::graph() const { return state_->candidates.graph(); }
std::int64_t Engines::count() const { return state_->candidates.count(); }
std::string Engines::name(std::int64_t engine) const { return state_->candidates.name(engine); }
bool Engines::compiles(std::int64_t engine) const { return state_->candidates.compiles(engine); }
std::string Engines::build(std::int64_t engine) { return state_->candidates.build(engine); }
std::size_t Engines::workspace_bytes(std::int64_t engine) const {
  return state_->candidates.workspace_bytes(engine);
}
void Engines::run(const Handle& handle, Places& places, void* workspace, std::int64_t engine) {
  Candidates& candidates = state_->candidates;
  candidates.check("run", candidates.run(handle.state().handle, places, workspace, engine));
}
Places Engines::constants() { return state_->candidates.constants(); }

}  // namespace rk::cudnn
