// All settings of `train`, and which of them go together. Their flags: train_flags.h; the options
// of the library that follow from them: train_options.h.
#pragma once

#include "tools/cli/flags/colour_values.h"
#include "tools/train/settings/setting_table.h"
#include "weights/checkpoint.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace rk {

struct TrainSettings {
  // Data
  std::string data;
  std::string test_data;
  std::int64_t batch = 128;
  std::int64_t per_class = 4;
  std::string sampler = "pk";
  std::int64_t batches = 0;
  int image_size = 0;
  int resize = 0;
  bool stretch = false;
  std::vector<double> input_mean = flag_colours(ModelDescription{}.input_mean);
  std::vector<double> input_std = flag_colours(ModelDescription{}.input_std);
  std::string augment = "crop=resized,flip=0.5";
  int workers = 0;
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
  std::string freeze = "none";
  bool stride_in_1x1 = false;
  std::string precision = "fp32";
  std::string graph = "on";
  std::string plans;
  std::int64_t chunk = 0;
  // Loss and optimizer
  std::string loss = "smooth_ap";
  std::int64_t memory = 0;
  std::string optimizer = "adam";
  double lr = 1e-4;
  double embedding_rate = 1.0;
  double proxy_rate = 100.0;
  double weight_decay = 0.0;
  bool no_decay_norms = false;
  double clip_norm = 0.0;
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
  std::int64_t eval_train = 5000;
  std::string monitor = "map_at_r";
  std::int64_t patience = 0;
  std::string log = "none";
  double save_every = 30;  // minutes
  std::string out;
  std::string recipe;
  std::string resume = "never";
  bool allow_changed_data = false;
};

// Throws UsageError if flags contradict each other. Call before applying any other source.
void refuse_conflicts(const SettingTable& table, const TrainSettings& settings);

// One line for each flag in `given` that has no effect, or none within the run, with the other
// (resolved) settings; and for each parameter of a given loss.
std::vector<std::string> without_effect(const std::set<std::string>& given,
                                        const TrainSettings& settings);

// SettingTable::apply for a recipe or a resumed run's settings; a given --per-class implies the
// sampler pk, whatever sampler these name.
void apply_settings(SettingTable& table, nlohmann::ordered_json values, const std::string& source);

// With --weights the network and its image preparation stay unchanged: of arch, stride-in-1x1,
// pool, gem-p, dim, input-mean, input-std, image-size, stretch and (for that size) resize, those
// that no source has set are taken from the checkpoint. Returns these as "arch resnet18, dim 128,
// ...". Throws UsageError if another arch was requested.
std::string adopt_model(const SettingTable& table, TrainSettings& settings,
                        const Checkpoint& checkpoint);

// Throws UsageError if a flag's value is invalid regardless of other flags and of a checkpoint.
void check_values(const TrainSettings& settings);

std::string automatic_bn(const TrainSettings& settings);  // what --bn auto stands for

// Replaces automatic values by explicit ones (bn = auto, resize = 0, parameters of the loss,
// absolute paths); throws UsageError for invalid values and combinations.
void resolve(TrainSettings& settings);

// The sizes of which a batch must be a multiple, for the sampler and for `processes` to share it.
std::int64_t batch_step(const TrainSettings& settings, int processes);

// Throws UsageError unless `processes` can share the batch equally, and chunks the share of each.
// classes: of the training set, which limit the batch that is advised. in_epoch: the run goes on
// within an epoch, which must be finished with its batch.
void check_shares(const TrainSettings& settings, int processes, std::int64_t classes,
                  bool in_epoch);

}  // namespace rk
