// Everything one can ask of `train`, its flags, and what follows from it.
#pragma once

#include "data/augment.h"
#include "tools/cli.h"
#include "tools/setting_table.h"
#include "tools/trainer.h"

#include <cstdint>
#include <string>
#include <vector>

namespace rk {

struct TrainSettings {
  // Data
  std::string data;
  std::string test_data;
  std::int64_t batch = 128;
  std::int64_t per_class = 4;
  std::int64_t batches = 0;
  int image_size = 224;
  int resize = 0;
  std::vector<double> input_mean = {0.485, 0.456,
                                    0.406};  // ImageNet's, as torchvision's weights want
  std::vector<double> input_std = {0.229, 0.224, 0.225};
  std::string augment = "crop=resized,flip=0.5";
  int workers = 2;
  std::int64_t cache = 512;  // MiB
  std::int64_t max_bad = 0;
  // Network
  std::string arch = "resnet50";
  std::string weights;
  std::int64_t dim = 512;
  std::string pool = "avg";
  double gem_p = 3.0;
  std::string embedding_start = "uniform";
  std::string bn = "auto";
  bool stride_in_1x1 = false;
  // Loss and optimizer
  std::string loss = "smooth_ap";
  std::string optimizer = "adam";
  double lr = 1e-4;
  double embedding_rate = 1.0;
  double weight_decay = 0.0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double momentum = 0.9;
  bool nesterov = false;
  // Schedule
  std::string schedule = "constant";
  double warmup = 0.0;
  double drop_every = 0.0;
  std::vector<double> drop_at;
  double drop_factor = 0.1;
  double lr_floor = 0.0;
  // Run
  std::int64_t epochs = 10;
  std::int64_t eval_batch = 64;
  std::string out;
  std::string recipe;
  std::string resume = "never";
};

// Adds the flags in groups. `recipe`, `out` and `resume` are no settings of a run and not in the
// table.
void add_train_options(CLI::App& app, SettingTable& table, TrainSettings& settings);

// Spells out what was left to choose (bn = auto, resize = 0, parameters of the loss) and refuses
// what cannot be meant: UsageError.
void resolve(TrainSettings& settings);

ModelDescription model_description(const TrainSettings& settings);
AugmentOptions augment_options(const TrainSettings& settings);
// steps: of one epoch.
TrainerOptions trainer_options(const TrainSettings& settings, std::uint64_t seed,
                               std::int64_t steps);

}  // namespace rk
