#include "tools/bench/gpu_rates.h"

#include "engine/device/cuda/buffer.h"
#include "engine/device/cuda/timer.h"
#include "engine/device/pinned_buffer.h"
#include "tools/bench/timing.h"

#include <cstring>
#include <vector>

namespace rk {
namespace {

template <class Work> double median_seconds(const CudaContext& cuda, const Work& work) {
  DeviceTimer timer(cuda);
  std::vector<double> times;
  for (int repeat = 0; repeat < 5; ++repeat) {
    timer.start();
    work();
    times.push_back(timer.stop());
  }
  return summarize(times).median * 1e-3;
}

}  // namespace

double gpu_copy_rate(const CudaContext& cuda) {
  constexpr std::size_t kBytes = std::size_t{512} << 20;
  const DeviceBuffer from(kBytes), to(kBytes);
  return 2.0 * kBytes /
         median_seconds(cuda, [&] { cuda.copy(to.as<std::byte>(), from.as<std::byte>(), kBytes); });
}

double gpu_upload_rate(const CudaContext& cuda) {
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  const PinnedBuffer from(kBytes);
  std::memset(from.as<std::byte>(), 1,
              kBytes);  // pages never written may be the same physical page
  const DeviceBuffer to(kBytes);
  return kBytes / median_seconds(
                      cuda, [&] { cuda.upload(to.as<std::byte>(), from.as<std::byte>(), kBytes); });
}

}  // namespace rk
