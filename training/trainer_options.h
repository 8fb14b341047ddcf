// The options of a trainer (training/trainer.h).
#pragma once

#include "engine/device/precision.h"
#include "engine/group/process_group.h"
#include "layers/batchnorm_mode.h"
#include "losses/registry.h"
#include "training/optimizer.h"
#include "training/schedule.h"
#include "weights/model_description.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace rk {

struct TrainerOptions {
  ModelDescription model;
  BatchNormMode batchnorm = BatchNormMode::kBatch;
  bool orthogonal_embedding = false;
  LossSpec loss;
  OptimizerParams optimizer;
  LearningPolicy learning;
  std::vector<std::string> frozen;  // beginnings of the names of parameters that do not learn
  ScheduleParams schedule;
  std::int64_t batch = 128;
  ProcessGroup* processes = nullptr;  // that share a batch, a divisor of `batch`; null: this
                                      // process alone
  std::int64_t chunk = 0;  // images at a time, a divisor of the process's share; 0: all of it
  std::int64_t memory_batches = 0;  // batches whose embeddings are kept, for losses that take them
  std::int64_t classes = 0;  // of the data set: the number of proxies, for losses with proxies
  std::uint64_t seed = 0;
  Precision precision = Precision::kFp32;  // on a GPU; the CPU computes in fp32 only
  bool capture = true;  // on a GPU: capture the step as a CUDA graph and replay it
  // Bytes of device memory that the run takes besides the trainer's own.
  std::int64_t other_bytes = 0;
  // Called while cuDNN builds the graphs of its convolutions, which may take a minute: (done, all).
  std::function<void(std::int64_t, std::int64_t)> preparing;
};

}  // namespace rk
