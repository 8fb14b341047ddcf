// `bench step --fusions`: what it would save on this GPU to fuse batch normalisation into the
// neighbouring convolutions (fusions.h). For each fusion the fastest engine is timed beside the
// fastest engines of its parts, in one run; passes over images that the fusion saves count as a
// copy of their bytes.
#pragma once

#include "tools/bench/tuning/fusions.h"
#include "training/trainer.h"

#include <functional>

namespace rk {

struct TimedFusion {
  Fusion fusion;
  // Milliseconds for one execution. fused_ms is infinite if no engine runs one of its graphs.
  double parts_ms = 0, fused_ms = 0, saved_ms = 0;
  // Gain per step; negative if the fused engines lose more time than the saved passes take.
  double gain_ms() const { return fusion.count * (parts_ms + saved_ms - fused_ms); }
};

using FusionReport = std::function<void(const TimedFusion&)>;  // called for each result

// options: must have fp16 and batch statistics. copy_rate: bytes per second, read and written.
// Fusions that save most bytes in a step come first; the context's plan table is empty afterwards.
void time_fusions(const Context& context, const TrainerOptions& options, int repeats,
                  double copy_rate, const FusionReport& report);

}  // namespace rk
