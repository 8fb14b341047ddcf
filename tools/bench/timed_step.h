// Whole training steps through the trainer, on either device, on pictures of noise: what `bench
// step` times is what training runs.
#pragma once

#include "training/trainer.h"

#include <cstdint>
#include <deque>
#include <vector>

namespace rk {

// On zeros GPUs run faster. Pairs of images are of one class.
struct NoisePictures {
  NoisePictures(std::int64_t count, std::int64_t side, std::uint64_t seed);
  NoisePictures(const NoisePictures&) = delete;
  NoisePictures& operator=(const NoisePictures&) = delete;

  std::vector<std::uint8_t> pixels;
  std::vector<std::int64_t> labels, indices;
  Batch batch;
};

class TimedStep {
 public:
  TimedStep(const Context& context, const TrainerOptions& options, std::uint64_t seed);

  // Milliseconds from the call to the result on the host. On a GPU the next batch goes up beside
  // it.
  double run();
  Trainer& trainer() { return trainer_; }
  std::size_t reserved() const;  // bytes

 private:
  Trainer trainer_;
  std::deque<NoisePictures> batches_;  // several, so that none stays in a cache
  std::size_t number_ = 0;
};

}  // namespace rk
