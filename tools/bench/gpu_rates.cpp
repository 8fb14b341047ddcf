#include "tools/bench/gpu_rates.h"

#include "engine/device/cuda/buffer.h"
#include "engine/device/cuda/timer.h"
#include "engine/device/pinned_buffer.h"
#include "tools/bench/timing.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace rk {
namespace {

template <class Work> double median_seconds(const CudaContext& cuda, const Work& work) {
  constexpr double kWarmUpMs = 30;  // in which clocks rise
  DeviceTimer timer(cuda);
  const auto milliseconds = [&] {
    timer.start();
    work();
    return timer.stop();
  };
  for (double spent = 0; spent < kWarmUpMs;) spent += milliseconds();
  std::vector<double> times;
  for (int repeat = 0; repeat < 5; ++repeat) times.push_back(milliseconds());
  return summarize(times).median * 1e-3;
}

}  // namespace

double gpu_copy_rate(const CudaContext& cuda) {
  constexpr std::size_t kMost = std::size_t{512} << 20;
  const std::size_t bytes = std::min(kMost, cuda.free_bytes() / 16);
  const DeviceBuffer from(bytes), to(bytes);
  const auto copy = [&] { cuda.copy(to.as<std::byte>(), from.as<std::byte>(), bytes); };
  return 2.0 * static_cast<double>(bytes) / median_seconds(cuda, copy);
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
