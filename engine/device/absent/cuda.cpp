// Stand-ins for a build without CUDA: they refuse every request for a GPU, so that callers need not
// ask whether there could be one.
#include "engine/base/error.h"
#include "engine/device/cuda/buffer.h"
#include "engine/device/cuda/context.h"
#include "engine/device/cuda/graph.h"
#include "engine/device/cuda/mark.h"
#include "engine/device/cuda/timer.h"
#include "engine/device/cuda/upload.h"
#include "engine/device/pinned_buffer.h"

namespace rk {
namespace {

[[noreturn]] void refuse() { fail<DeviceError>("this build has no GPU code; use --device cpu"); }

}  // namespace

struct CudaContext::State {};
CudaContext::CudaContext(int device) {
  fail<DeviceError>("cuda:{}: this build has no GPU code; use --device cpu", device);
}
CudaContext::~CudaContext() = default;
void CudaContext::use_in_this_thread() const { refuse(); }
CudaStream CudaContext::stream() const { refuse(); }
std::size_t CudaContext::free_bytes() const { refuse(); }
const std::string& CudaContext::name() const { refuse(); }
void CudaContext::synchronize() const { refuse(); }
void CudaContext::upload(void*, const void*, std::size_t) const { refuse(); }
void CudaContext::download(void*, const void*, std::size_t) const { refuse(); }
void CudaContext::copy(void*, const void*, std::size_t) const { refuse(); }
void CudaContext::clear(void*, std::size_t) const { refuse(); }
void CudaContext::gemm(const MatrixProduct<float>&) const { refuse(); }

void DeviceBuffer::Free::operator()(std::byte*) const {}
DeviceBuffer::DeviceBuffer(std::size_t) { refuse(); }
void DeviceBuffer::upload(const void*, std::size_t) { refuse(); }
void DeviceBuffer::download(void*, std::size_t) const { refuse(); }

void PinnedBuffer::Free::operator()(std::byte*) const {}
std::byte* PinnedBuffer::page_locked_memory(std::size_t) { refuse(); }
std::byte* PinnedBuffer::ordinary_memory(std::size_t) { refuse(); }

struct CudaGraph::State {};
CudaGraph::CudaGraph(const CudaContext&, const std::function<void()>&) { refuse(); }
CudaGraph::~CudaGraph() = default;
void CudaGraph::launch() const { refuse(); }
std::size_t CudaGraph::nodes() const { refuse(); }

struct DeviceMark::State {};
DeviceMark::DeviceMark(const CudaContext&) { refuse(); }
DeviceMark::~DeviceMark() = default;
void DeviceMark::set() { refuse(); }
void DeviceMark::wait() const { refuse(); }

struct DeviceTimer::State {};
DeviceTimer::DeviceTimer(const CudaContext&) { refuse(); }
DeviceTimer::~DeviceTimer() = default;
void DeviceTimer::start() { refuse(); }
double DeviceTimer::stop() { refuse(); }

struct DeviceUpload::State {};
DeviceUpload::DeviceUpload() = default;
DeviceUpload::DeviceUpload(const CudaContext&, std::size_t) { refuse(); }
DeviceUpload::~DeviceUpload() = default;
DeviceUpload::DeviceUpload(DeviceUpload&&) noexcept = default;
DeviceUpload& DeviceUpload::operator=(DeviceUpload&&) noexcept = default;
void DeviceUpload::stage(std::span<const std::byte>) { refuse(); }
void DeviceUpload::take() { refuse(); }
void DeviceUpload::take_back() { refuse(); }
std::byte* DeviceUpload::data() const { refuse(); }
std::size_t DeviceUpload::reserved_bytes() const { return 0; }

}  // namespace rk
