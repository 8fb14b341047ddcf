#include "tools/bench/bench_device.h"

#include "engine/device/cuda/buffer.h"
#include "engine/device/cuda/timer.h"
#include "engine/system/signals.h"
#include "kernels/cuda/sort.h"
#include "retrieval/passes/gpu_score_pass.h"
#include "tools/bench/work_timer.h"

#include <algorithm>
#include <vector>

namespace rk {
namespace {

constexpr int kWarmUp = 5;  // clocks rise, kernels are loaded

}  // namespace

DeviceRankTimes time_gpu_ranking(const Context& context, const LossSpec& spec,
                                 std::span<const float> scores,
                                 std::span<const std::uint8_t> targets, int repeats) {
  const auto n = static_cast<std::int64_t>(scores.size());
  const auto loss = make_loss<float>(spec);
  loss->allocate(context, {.rows = n, .memory = 0, .dim = 0, .classes = 1});
  const Memory given = context.copy_of(scores);
  const Memory grad = context.allocate<float>(n);
  LossInput<float> input;
  input.rows = n;
  input.classes = 1;
  input.targets = targets.data();
  input.scores = given.as<float>();
  LossOutput<float> output;
  output.grad = grad.as<float>();
  loss->prepare(context, input);
  const Memory keys[2] = {context.allocate<float>(n), context.allocate<float>(n)};
  const Memory items[2] = {context.allocate<std::uint32_t>(n), context.allocate<std::uint32_t>(n)};
  const Memory workspace = context.allocate(sort_bytes<std::uint32_t>(n));
  const auto pairs = [&](int k) {
    return DevicePairs<std::uint32_t>{keys[k].as<std::uint32_t>(), items[k].as<std::uint32_t>()};
  };
  const auto rank = [&] { loss->launch(context, input, output); };
  const auto sort_alone = [&] {
    sort_pairs(n, 32, pairs(0), pairs(1), workspace.data(), workspace.bytes(),
               context.cuda().stream());
  };
  WorkTimer timer(context);
  std::vector<double> totals, sorts;
  for (int repeat = -kWarmUp; repeat < repeats; ++repeat) {
    stop_if_interrupted();
    const double total = timer.milliseconds(rank);
    // The bits of the scores serve as keys.
    context.copy(keys[0].data(), given.data(), given.bytes());
    const double sort = timer.milliseconds(sort_alone);
    if (repeat < 0) continue;
    totals.push_back(total);
    sorts.push_back(sort);
  }
  return {summarize(totals), summarize(sorts), loss->bytes(), launches_of(context, rank)};
}

double device_products_ms(const CudaContext& cuda, std::int64_t queries, std::int64_t gallery,
                          std::int64_t dim) {
  const ScoreTileShape shape = device_tile_shape(queries, gallery);
  // Varied numbers, like embeddings, since products of zeros would run faster.
  std::vector<float> values(static_cast<std::size_t>(std::max(shape.rows, shape.columns) * dim));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i * 2654435761U % 1000) / 1000.0F - 0.5F;
  }
  const auto rows = DeviceBuffer::copy_of(values);
  const auto tile = DeviceBuffer::of<float>(shape.rows * shape.columns);
  const Factor<float> columns{rows.as<float>(), shape.columns, dim, dim};
  const MatrixProduct<float> product{
      .a = {rows.as<float>(), shape.rows, dim, dim},
      .b = transposed(columns),
      .c = {tile.as<float>(), shape.rows, shape.columns, shape.columns}};
  DeviceTimer timer(cuda);
  timer.start();
  for (std::int64_t q = 0; q < queries; q += shape.rows) {
    for (std::int64_t g = 0; g < gallery; g += shape.columns) cuda.gemm(product);
  }
  return timer.stop();
}

}  // namespace rk
