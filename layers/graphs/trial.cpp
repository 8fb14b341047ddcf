#include "layers/graphs/trial.h"

#include "engine/base/random.h"
#include "engine/device/cuda/context.h"
#include "engine/device/cuda/timer.h"
#include "engine/device/pinned_buffer.h"
#include "engine/device/precision.h"
#include "kernels/blocks/difference_block.h"
#include "kernels/half_element.h"
#include "kernels/launch.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace rk::gpu {
namespace {

template <class T>
double relative_error(const Context& context, const T* got, const T* expected, std::int64_t count) {
  SquaredDifferences<T> difference{.count = count, .a = got, .b = expected};
  const std::size_t bytes = 2 * sizeof(double) * static_cast<std::size_t>(difference.blocks());
  const Memory partial = context.allocate(bytes);
  difference.partial = partial.as<double>();
  launch(difference, context.stream());
  std::vector<double> host(bytes / sizeof(double));
  partial.download(host.data(), bytes);
  double apart = 0, size = 0;
  for (std::size_t b = 0; b < host.size(); b += 2) {
    apart += host[b];
    size += host[b + 1];
  }
  if (apart == 0) return 0;
  const double error = std::sqrt(apart / size);
  return std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
}

// For an even number of times, the larger of the middle two.
double median(std::vector<double> times) {
  const auto middle = times.begin() + std::ssize(times) / 2;
  std::ranges::nth_element(times, middle);
  return *middle;
}

}  // namespace

void fill_with_noise(const Context& context, void* device, std::int64_t count, DType type,
                     std::uint32_t stream) {
  constexpr std::int64_t kPeriod = std::int64_t{1} << 20;
  const CudaContext& cuda = context.cuda();
  CounterRandom random(0, stream, 0);
  const std::int64_t made = std::min(count, kPeriod);
  const PinnedBuffer host(static_cast<std::size_t>(made) * size_of(type));
  if (type == DType::kUint8) {
    std::generate_n(host.as<std::uint8_t>(), made,
                    [&] { return static_cast<std::uint8_t>(random.uniform(0.0, 256.0)); });
  } else {
    with_type(type, [&]<class T>() {
      std::generate_n(host.as<T>(), made, [&] {
        return Element<T>::narrow(static_cast<float>(random.uniform(-1.0, 1.0)));
      });
    });
  }
  auto* bytes = static_cast<std::byte*>(device);
  const std::size_t filled = static_cast<std::size_t>(made) * size_of(type);
  cuda.upload(bytes, host.as<std::byte>(), filled);
  cuda.repeat(bytes, filled, static_cast<std::size_t>(count) * size_of(type));
  cuda.synchronize();
}

double relative_error(const Context& context, const void* got, const void* expected,
                      std::int64_t count, DType type) {
  return with_type(type, [&]<class T>() {
    return relative_error(context, static_cast<const T*>(got), static_cast<const T*>(expected),
                          count);
  });
}

std::vector<double> time_replays(const Context& context,
                                 const std::vector<std::unique_ptr<CudaGraph>>& graphs,
                                 int repeats) {
  constexpr int kLook = 2;
  constexpr double kHopeless = 3;  // times the fastest of all
  DeviceTimer timer(context.cuda());
  std::vector<std::vector<double>> times(graphs.size());
  double least = std::numeric_limits<double>::infinity();
  for (const auto& graph : graphs) graph->launch();  // raises the clocks
  for (int r = 0; r < repeats; ++r) {
    for (std::size_t g = 0; g < graphs.size(); ++g) {
      if (r >= kLook && *std::ranges::min_element(times[g]) > kHopeless * least) continue;
      timer.start();
      graphs[g]->launch();
      times[g].push_back(timer.stop());
      least = std::min(least, times[g].back());
    }
  }
  std::vector<double> medians;
  medians.reserve(times.size());
  for (const std::vector<double>& of_graph : times) medians.push_back(median(of_graph));
  return medians;
}

}  // namespace rk::gpu
