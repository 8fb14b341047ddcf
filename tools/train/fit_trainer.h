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

// What loading takes beside the network: bytes.
struct LoadingBytes {
  std::int64_t ring = 0;             // training's batches
  std::int64_t evaluation_ring = 0;  // those of the held-out images
  std::int64_t pictures = 0;         // that the threads of both hold decoded
  std::int64_t cache = 0;            // kept decoded, at most
};

// Pictures are taken to be as large as the first of training; where that cannot be read, whoever
// reads it later says what is wrong with it. held_out: null where there is none.
LoadingBytes loading_bytes(const TrainSettings& settings, const Dataset& train,
                           const Dataset* held_out, int processes);

struct TrainerFit {
  const Context& context;
  const TrainSettings& settings;
  const Dataset* held_out;
  const LoadingBytes& loading;
  // Makes --chunk what fits, in `settings` too; null: it is somebody's choice.
  std::function<void(std::int64_t chunk)> choose_chunk;
};

// The trainer, with a smaller chunk where that may be chosen and the whole batch does not fit.
// TooLittleMemory that says what of it could be made smaller.
std::unique_ptr<Trainer> fit_trainer(const TrainerFit& fit, TrainerOptions options);

}  // namespace rk
