// A build with GPU code but without cuDNN: losses run on a GPU, networks do not.
#include "layers/graphs/engines.h"

#include "engine/base/error.h"

namespace rk::cudnn {
namespace {

[[noreturn]] void refuse() {
  fail<DeviceError>(
      "networks on a GPU need cuDNN, which this program was built without; "
      "tools/scripts/setup_cudnn.sh fetches it, then build again, or take --device cpu");
}

}  // namespace

std::string version() { refuse(); }

struct Handle::State {};
Handle::Handle(CudaStream) { refuse(); }
Handle::~Handle() = default;

struct Engines::State {};
Engines::Engines(const Graph&, const Handle&) { refuse(); }
Engines::~Engines() = default;
const Graph& Engines::graph() const { refuse(); }
std::int64_t Engines::count() const { refuse(); }
std::string Engines::name(std::int64_t) const { refuse(); }
bool Engines::compiles(std::int64_t) const { refuse(); }
std::string Engines::build(std::int64_t) { refuse(); }
std::size_t Engines::workspace_bytes(std::int64_t) const { refuse(); }
void Engines::run(const Handle&, Places&, void*, std::int64_t) { refuse(); }
Places Engines::constants() { refuse(); }

}  // namespace rk::cudnn
