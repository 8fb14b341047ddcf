// A trainer that fits into the memory there is, with all that a run takes beside it.
#pragma once

#include "data/sources/dataset.h"
#include "engine/device/context.h"
#include "tools/train/train_settings.h"
#include "training/embed.h"
#include "training/trainer.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace rk {

// Images at a time in evaluation. held_out: null where there is none.
std::int64_t evaluation_batch(const TrainSettings& settings, const Dataset* held_out);

// Plans the embedder; the bytes that it reserves. DeviceError that names what to make smaller.
std::size_t plan_evaluation(Embedder& embedder, const TrainSettings& settings);

struct TrainerFit {
  const Context& context;
  const TrainSettings& settings;
  const Dataset& train;
  const Dataset* held_out;
  // Makes --chunk what fits, in `settings` too; null: it is somebody's choice.
  std::function<void(std::int64_t chunk)> choose_chunk;
};

// The trainer, with a smaller chunk where that may be chosen and the whole batch does not fit.
// TooLittleMemory that says what of it could be made smaller.
std::unique_ptr<Trainer> fit_trainer(const TrainerFit& fit, TrainerOptions options);

}  // namespace rk
