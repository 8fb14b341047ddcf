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

  // Milliseconds from one step's result to the next one's, which on a GPU is the time that a step
  // takes there: as in training, the host is a step ahead, and the next batch goes up beside it.
  double run();
  // Waits for the step that is still under way.
  void finish() { trainer_.finish(); }
  Trainer& trainer() { return trainer_; }
  std::size_t reserved() const;  // bytes

 private:
  Trainer trainer_;
  std::deque<NoisePictures> batches_;  // several, so that none stays in a cache
  std::size_t number_ = 0;
};

}  // namespace rk
