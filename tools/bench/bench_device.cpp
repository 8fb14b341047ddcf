#include "tools/bench/bench_device.h"

#include "engine/base/error.h"
#include "engine/device/cuda/buffer.h"
#include "engine/device/cuda/timer.h"
#include "engine/device/dispatch.h"
#include "engine/system/signals.h"
#include "kernels/cuda/sort.h"
#include "losses/cuda/loss.h"
#include "retrieval/passes/device_score_pass.h"

#include <algorithm>
#include <vector>

namespace rk {
namespace {

constexpr int kWarmUp = 5;  // clocks rise, kernels are loaded
constexpr const char* kNoCode = "this build has no GPU code; use --device cpu";

}  // namespace

DeviceRankTimes time_device_ranking(const CudaContext& cuda, const LossSpec& spec,
                                    std::span<const float> scores,
                                    std::span<const std::uint8_t> targets, int repeats) {
  if constexpr (!kHasCuda) {
    fail<DeviceError>(kNoCode);
  } else {
    const auto n = static_cast<std::int64_t>(scores.size());
    const auto loss = make_device_loss(cuda, spec);
    loss->plan({.rows = n, .memory = 0, .dim = 0, .classes = 1});
    LossInput<float> batch;
    batch.rows = n;
    batch.classes = 1;
    batch.targets = targets.data();
    loss->prepare(batch);
    const auto given = DeviceBuffer::copy_of(std::vector<float>(scores.begin(), scores.end()));
    const auto grad = DeviceBuffer::of<float>(n);
    const DeviceBuffer keys[2] = {DeviceBuffer::of<std::uint32_t>(n),
                                  DeviceBuffer::of<std::uint32_t>(n)};
    const DeviceBuffer items[2] = {DeviceBuffer::of<std::uint32_t>(n),
                                   DeviceBuffer::of<std::uint32_t>(n)};
    const DeviceBuffer workspace(sort_bytes<std::uint32_t>(n));
    const auto pairs = [&](int k) {
      return DevicePairs<std::uint32_t>{keys[k].as<std::uint32_t>(), items[k].as<std::uint32_t>()};
    };
    DeviceTimer timer(cuda);
    std::vector<double> totals, sorts;
    for (int repeat = -kWarmUp; repeat < repeats; ++repeat) {
      stop_if_interrupted();
      timer.start();
      loss->launch({.scores = given.as<float>()}, {.grad = grad.as<float>()});
      const double total = timer.stop();
      // The scores' bits are keys as good as any.
      cuda.copy(keys[0].as<float>(), given.as<float>(), given.bytes());
      timer.start();
      sort_pairs(n, 32, pairs(0), pairs(1), workspace.as<std::byte>(), workspace.bytes(),
                 cuda.stream());
      const double sort = timer.stop();
      if (repeat < 0) continue;
      totals.push_back(total);
      sorts.push_back(sort);
    }
    return {summarize(totals), summarize(sorts), loss->bytes(), loss->kernels()};
  }
}

double device_products_ms(const CudaContext& cuda, std::int64_t queries, std::int64_t gallery,
                          std::int64_t dim) {
  if constexpr (!kHasCuda) {
    fail<DeviceError>(kNoCode);
  } else {
    const ScoreTileShape shape = device_tile_shape(queries, gallery);
    // Of different numbers, as embeddings are: products of zeros would run faster.
    std::vector<float> values(static_cast<std::size_t>(std::max(shape.rows, shape.columns) * dim));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(i * 2654435761U % 1000) / 1000.0F - 0.5F;
    }
    const auto rows = DeviceBuffer::copy_of(values);
    const auto tile = DeviceBuffer::of<float>(shape.rows * shape.columns);
    const auto* from = rows.as<float>();
    DeviceTimer timer(cuda);
    timer.start();
    for (std::int64_t q = 0; q < queries; q += shape.rows) {
      for (std::int64_t g = 0; g < gallery; g += shape.columns) {
        cuda.gemm(Op::kNone, Op::kTranspose, shape.rows, shape.columns, dim, 1.0F, from, dim, from,
                  dim, 0.0F, tile.as<float>(), shape.columns);
      }
    }
    return timer.stop();
  }
}

}  // namespace rk
