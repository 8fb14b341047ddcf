#include "tools/bench/cpu_rates.h"

#include "engine/base/integers.h"
#include "engine/base/parallel.h"
#include "engine/device/buffer.h"
#include "kernels/math.h"
#include "tools/bench/timing.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace rk {
namespace {

float row_sigmoid(float x) {
  const float u = half_sigmoid(x);
  return x < 0 ? u : 1 - u;
}
[[gnu::noinline]] float scalar_sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

// A lambda can be inlined into the loop; a function pointer would remain a call.
template <class F> double sigmoid_rate(int threads, F&& sigmoid) {
  constexpr int kCount = 2048;
  constexpr int kRepeats = 200;
  std::vector<float> values(static_cast<std::size_t>(threads * kCount));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i % 61) - 30.0F;
  }
  std::vector<float> sums(static_cast<std::size_t>(threads));
  std::vector<double> times(7);
  for (double& time : times) {
    time = milliseconds([&] {
      parallel_for(threads, threads, [&](std::int64_t part, int) {
        const SerialTeam team;
        float* mine = values.data() + part * kCount;
        float total = 0;
        for (int r = 0; r < kRepeats; ++r) {
          const float shift = static_cast<float>(r);
          total += team.sum(kCount, [&](int i) { return sigmoid(mine[i] - shift); });
        }
        sums[at(part)] = total;
      });
    });
  }
  return threads * static_cast<double>(kCount) * kRepeats / summarize(times).median * 1e3;
}

}  // namespace

double row_sigmoid_rate(int threads) {
  return sigmoid_rate(threads, [](float x) { return row_sigmoid(x); });
}

double scalar_sigmoid_rate(int threads) {
  return sigmoid_rate(threads, [](float x) { return scalar_sigmoid(x); });
}

double cpu_copy_rate(int threads, double array_bytes) {
  constexpr std::int64_t kMost = std::int64_t{64} << 20;
  const std::int64_t bytes = std::clamp(static_cast<std::int64_t>(array_bytes), kMost >> 10, kMost);
  const std::int64_t copies = kMost / bytes;
  const Buffer from(static_cast<std::size_t>(bytes));
  const Buffer to(static_cast<std::size_t>(bytes));
  std::memset(from.data(), 1, from.bytes());
  std::vector<double> times(5);
  for (double& time : times) {
    time = milliseconds([&] {
      parallel_ranges(threads, bytes, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t k = 0; k < copies; ++k) {
          std::memcpy(to.as<char>() + begin, from.as<char>() + begin,
                      static_cast<std::size_t>(end - begin));
        }
      });
    });
  }
  return 2.0 * static_cast<double>(bytes * copies) / summarize(times).median * 1e3;
}

}  // namespace rk
