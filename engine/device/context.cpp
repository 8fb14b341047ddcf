#include "engine/device/context.h"

#include "engine/base/english.h"
#include "engine/base/note.h"
#include "engine/base/parallel.h"
#include "engine/device/buffer.h"
#include "engine/device/cuda/buffer.h"
#include "engine/device/cuda/context.h"
#include "engine/device/onednn.h"
#include "engine/system/host_memory.h"
#include "engine/system/thread_limit.h"
#include "engine/system/usable_cores.h"

#include <algorithm>
#include <cstring>
#include <fstream>

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace rk {
namespace {

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    return line.substr(std::min(line.size(), line.find(": ") + 2));
  }
  return "unknown processor";
}

}  // namespace

Context::Context(int threads)
    : threads_(threads > 0 ? threads : usable_cores()), onednn_(std::make_unique<OneDnn>()) {
  require_threads(threads_);
#if defined(_OPENMP)
  // Teams get as many threads as requested, whatever OMP_DYNAMIC and OMP_MAX_ACTIVE_LEVELS say.
  omp_set_dynamic(0);
  omp_set_max_active_levels(std::max(1, omp_get_max_active_levels()));
#endif
  int got = 0;
  parallel_run(
      threads_,
      [](void* team, int number, int of) {
        if (number == 0) *static_cast<int*>(team) = of;
      },
      &got);  // starts the threads now, while the system allows them
  if (got < threads_) {
    note(fmt::format("OpenMP gives {} of {} threads; OMP_THREAD_LIMIT says how many there may be",
                     got, threads_));
    threads_ = got;
  }
#if defined(_OPENMP)
  omp_set_num_threads(threads_);  // oneDNN asks OpenMP for the number and waits for that many
#endif
}

Context::Context(int threads, const Device& device) : Context(threads) {
  if (device.cuda) cuda_ = std::make_unique<const CudaContext>(device.index);
}

Context::~Context() = default;

Memory Context::allocate(std::size_t bytes) const {
  return on_gpu() ? Memory(DeviceBuffer(bytes)) : Memory(Buffer(bytes));
}

void Context::copy(void* to, const void* from, std::size_t bytes) const {
  if (on_gpu()) return cuda_->copy(to, from, bytes);
  if (bytes > 0) std::memcpy(to, from, bytes);
}

void Context::clear(void* to, std::size_t bytes) const {
  if (on_gpu()) return cuda_->clear(to, bytes);
  if (bytes > 0) std::memset(to, 0, bytes);
}

void Context::upload(void* device, const void* host, std::size_t bytes) const {
  if (on_gpu()) return cuda_->upload(device, host, bytes);
  if (bytes > 0) std::memcpy(device, host, bytes);
}

void Context::download(void* host, const void* device, std::size_t bytes) const {
  if (on_gpu()) return cuda_->download(host, device, bytes);
  if (bytes > 0) std::memcpy(host, device, bytes);
}

void Context::synchronize() const {
  if (on_gpu()) cuda_->synchronize();
}

std::size_t Context::free_bytes() const {
  return on_gpu() ? cuda_->free_bytes() : static_cast<std::size_t>(free_host_bytes());
}

CudaStream Context::stream() const { return on_gpu() ? cuda_->stream() : nullptr; }

std::string Context::gpu_name() const { return on_gpu() ? cuda_->name() : ""; }

std::string Context::describe() const {
  const dnnl::version_t* version = dnnl::version();
  return fmt::format("{}, oneDNN {}.{}.{}, {}", processor(), version->major, version->minor,
                     version->patch, counted(threads_, "thread"));
}

}  // namespace rk
