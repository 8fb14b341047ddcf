#include "tools/bench/step/timed_step.h"

#include "engine/base/random.h"
#include "tools/bench/timing.h"

#include <algorithm>

namespace rk {

NoisePictures::NoisePictures(std::int64_t count, std::int64_t side, std::uint64_t seed) {
  CounterRandom random(seed, 0, 0);
  pixels.resize(static_cast<std::size_t>(count * side * side * 3));
  std::ranges::generate(pixels,
                        [&] { return static_cast<std::uint8_t>(random.uniform(0.0, 256.0)); });
  for (std::int64_t i = 0; i < count; ++i) {
    labels.push_back(i / 2);
    indices.push_back(i);
  }
  batch.count = count;
  batch.size = static_cast<int>(side);
  batch.pixels = pixels;
  batch.labels = labels;
  batch.indices = indices;
}

TimedStep::TimedStep(const Context& context, const TrainerOptions& options, std::uint64_t seed)
    : trainer_(context, options) {
  constexpr std::uint64_t kBatches = 4;
  for (std::uint64_t b = 0; b < kBatches; ++b) {
    batches_.emplace_back(options.batch, options.model.crop, seed + b);
  }
}

double TimedStep::run() {
  const Batch& batch = batches_[number_ % batches_.size()].batch;
  const Batch& next = batches_[++number_ % batches_.size()].batch;
  return milliseconds([&] {
    trainer_.advance(batch);
    trainer_.stage(next);
  });
}

std::size_t TimedStep::reserved() const {
  std::size_t bytes = 0;
  for (const auto& [name, group] : trainer_.reserved()) bytes += group;
  return bytes;
}

}  // namespace rk
