// The text that `train` prints before it begins: network, data, loss, memory.
#pragma once

#include "data/samplers/sampler.h"
#include "data/sources/dataset.h"
#include "tools/train/settings/train_settings.h"
#include "tools/train/trainer_within_memory.h"
#include "training/trainer.h"

#include <cstddef>
#include <string>
#include <vector>

namespace rk {

struct TrainParts {
  const TrainSettings& settings;
  const Trainer& trainer;
  const Sampler& sampler;
  const Dataset& data;
  // All that the network was trained on: those of `data`, and of the run whose weights it has.
  const std::vector<std::string>& class_names;
  const Dataset* held_out = nullptr;      // null: no evaluation
  const Dataset* train_sample = nullptr;  // also evaluated; null: none
  std::size_t evaluation_bytes = 0;
  LoadingBytes loading;
  int processes = 1;  // sharing a batch
};

std::vector<std::string> describe_training(const TrainParts& parts);  // lines

}  // namespace rk
