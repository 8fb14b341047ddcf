// `bench step --fusions`: what it would be worth, on this GPU, to compute batch normalisation in
// the convolutions beside it (layers/gpu/fusions.h). Of each fusion the fastest of its engines is
// timed beside the fastest of those for its parts, in one run; passes over images that it spares
// count what a copy takes for their bytes.
#pragma once

#include "layers/gpu/fusions.h"
#include "training/trainer.h"

#include <functional>

namespace rk {

struct TimedFusion {
  gpu::Fusion fusion;
  // Milliseconds, once. fused_ms is infinite where no engine has one of its graphs.
  double parts_ms = 0, fused_ms = 0, saved_ms = 0;
  // Of a step; negative where the fused engines take longer than the passes they spare.
  double gain_ms() const { return fusion.count * (parts_ms + saved_ms - fused_ms); }
};

using FusionReport = std::function<void(const TimedFusion&)>;  // called as soon as one is known

// options: fp16 and the batch's statistics. copy_rate: bytes a second, read and written. What moves
// most bytes in a step comes first; the context's plan table is empty afterwards.
void time_fusions(const Context& context, const TrainerOptions& options, int repeats,
                  double copy_rate, const FusionReport& report);

}  // namespace rk
