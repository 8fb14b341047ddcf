// A build with GPU code but without cuDNN: losses run on a GPU, networks do not.
#include "layers/graphs/graph_runner.h"

#include "engine/base/error.h"

namespace rk {
namespace {

[[noreturn]] void refuse() {
  fail<DeviceError>(
      "networks on a GPU need cuDNN, which this program was built without; "
      "tools/scripts/setup_cudnn.sh fetches it, then build again, or take --device cpu");
}

}  // namespace

struct GraphRunner::Impl {};

GraphRunner::GraphRunner() = default;
GraphRunner::GraphRunner(const Context&, const Graph&) { refuse(); }
GraphRunner::~GraphRunner() = default;
GraphRunner::GraphRunner(GraphRunner&&) noexcept = default;
GraphRunner& GraphRunner::operator=(GraphRunner&&) noexcept = default;
std::size_t GraphRunner::workspace_bytes() const { return 0; }
const std::string& GraphRunner::engine() const { refuse(); }
void GraphRunner::bind(const std::vector<Place>&, void*) { refuse(); }
void GraphRunner::run() const { refuse(); }

bool GraphRunner::exists(const Context&, const Graph&, const char*) { return false; }

void build_graphs(const Context&, const std::vector<Graph>&,
                  const std::function<void(std::int64_t, std::int64_t)>&) {
  refuse();
}

void set_plans(const Context&, const GpuPlans&) { refuse(); }
// Called while programs are recorded; such a program fails only in plan().
const GpuPlans& plans_of(const Context&) {
  static const GpuPlans none;
  return none;
}
PlansTaken plans_taken(const Context&) { return {}; }
GpuPlans::Timing time_engines(const Context&, const Graph&, int) { refuse(); }
std::string plan_environment(const Context&) { refuse(); }

}  // namespace rk
