// Builds a trainer that fits into the available memory together with everything else a run needs.
#pragma once

#include "data/sources/dataset.h"
#include "engine/device/context.h"
#include "tools/train/settings/train_settings.h"
#include "training/embed.h"
#include "training/trainer.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace rk {

struct PlannedEvaluation {
  std::unique_ptr<Embedder> embedder;
  std::size_t bytes;  // that it reserves
};

// Plans evaluation's network on these parameters. Throws DeviceError that names an --eval-batch for
// which the memory would suffice, if there is one.
PlannedEvaluation plan_evaluation(const Context& context, Parameters& parameters,
                                  const TrainSettings& settings, const Dataset& held_out);

// Bytes that loading takes besides the network.
struct LoadingBytes {
  std::int64_t ring = 0;             // training's batches
  std::int64_t evaluation_ring = 0;  // batches of the held-out images
  std::int64_t pictures = 0;         // decoded, in the threads of both
  std::int64_t cache = 0;            // decoded pictures, at most
};

// Assumes that all pictures are as large as the first training picture; if that cannot be read, the
// error is left to its next reader. held_out: null if there is none.
LoadingBytes loading_bytes(const TrainSettings& settings, const Dataset& train,
                           const Dataset* held_out, int processes);

// What a trainer is built for, and what needs memory beside it.
struct TrainerRequest {
  const Context& context;
  TrainSettings& settings;
  const Dataset* held_out;
  const LoadingBytes& loading;
  bool open_chunk = false;  // whether --chunk may be set to what fits
};

// Returns the trainer, with a smaller chunk if the whole batch does not fit and the chunk is open.
// Throws TooLittleMemory naming the parts that could be made smaller.
std::unique_ptr<Trainer> trainer_within_memory(const TrainerRequest& request,
                                               TrainerOptions options);

}  // namespace rk
