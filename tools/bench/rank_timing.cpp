#include "tools/bench/rank_timing.h"

#include "engine/base/integers.h"
#include "engine/base/parallel.h"
#include "engine/system/signals.h"
#include "kernels/cuda/sort.h"
#include "kernels/descending_key.h"
#include "kernels/radix_sort.h"
#include "tools/bench/work_timer.h"

#include <vector>

namespace rk {
namespace {

constexpr int kWarmUpOnGpu = 5;  // clocks rise, kernels are loaded

}  // namespace

RankTimes time_ranking(const Context& context, const LossSpec& spec, std::span<const float> scores,
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
  const bool on_gpu = context.on_gpu();
  const Memory workspace = on_gpu ? context.allocate(sort_bytes<std::uint32_t>(n))
                                  : context.allocate<std::int64_t>(radix_counts(context.threads()));
  const auto rank = [&] {
    if (!on_gpu) return loss->run(context, input, output);
    loss->launch(context, input, output);
  };
  const auto sort_on_gpu = [&] {
    const auto pairs = [&](int k) {
      return DevicePairs<std::uint32_t>{keys[k].as<std::uint32_t>(), items[k].as<std::uint32_t>()};
    };
    sort_pairs(n, 32, pairs(0), pairs(1), workspace.data(), workspace.bytes(), context.stream());
  };
  const auto sort_on_cpu = [&] {
    const auto pairs = [&](int k) {
      return KeyedItems<std::uint32_t>{keys[k].as<std::uint32_t>(), items[k].as<std::uint32_t>()};
    };
    const KeyedItems<std::uint32_t> from = pairs(0);
    parallel_for(context.threads(), n, [&](std::int64_t i, int) {
      from.keys[i] = descending_key(scores[at(i)]);
      from.items[i] = static_cast<std::uint32_t>(i);
    });
    radix_sort(context.threads(), n, from, pairs(1), workspace.as<std::int64_t>());
  };
  WorkTimer timer(context);
  std::vector<double> totals, sorts;
  for (int repeat = on_gpu ? -kWarmUpOnGpu : -1; repeat < repeats; ++repeat) {
    stop_if_interrupted();
    const double total = timer.milliseconds(rank);
    // On a GPU the bits of the scores serve as keys.
    if (on_gpu) context.copy(keys[0].data(), given.data(), given.bytes());
    const double sort = on_gpu ? timer.milliseconds(sort_on_gpu) : timer.milliseconds(sort_on_cpu);
    if (repeat < 0) continue;
    totals.push_back(total);
    sorts.push_back(sort);
  }
  return {summarize(totals), summarize(sorts), loss->bytes(),
          on_gpu ? launches_of(context, rank) : 0};
}

}  // namespace rk
