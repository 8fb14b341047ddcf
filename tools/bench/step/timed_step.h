// Whole training steps through the trainer, on either device, on pictures of noise, so that `bench
// step` times what training runs.
#pragma once

#include "training/trainer.h"

#include <cstdint>
#include <deque>
#include <vector>

namespace rk {

// Noise, since GPUs run faster on zeros. Each pair of consecutive images is one class.
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

  // Milliseconds from the result of one step to that of the next. On a GPU this is the time of a
  // step there: as in training, the host is one step ahead, and the next batch is uploaded
  // meanwhile.
  double run();
  // Waits for the step in progress.
  void finish() { trainer_.finish(); }
  Trainer& trainer() { return trainer_; }
  std::size_t reserved() const;  // bytes

 private:
  Trainer trainer_;
  std::deque<NoisePictures> batches_;  // several, so that no batch stays in a cache
  std::size_t number_ = 0;
};

}  // namespace rk
