#include "tools/train/settings/train_options.h"

#include "data/sources/open_dataset.h"
#include "engine/device/precision.h"
#include "losses/registry.h"
#include "weights/architectures/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace rk {
namespace {

// The name prefixes of the parameters of all stages up to `last`.
std::vector<std::string> frozen_beginnings(const std::string& arch, const std::string& last) {
  std::vector<std::string> beginnings;
  if (last == "none") return beginnings;
  for (const Stage& stage : network_stages(arch)) {
    beginnings.insert(beginnings.end(), stage.beginnings.begin(), stage.beginnings.end());
    if (stage.name == last) break;
  }
  return beginnings;
}

OptimizerKind optimizer_kind(const std::string& name) {
  if (name == "adam") return OptimizerKind::kAdam;
  return name == "adamw" ? OptimizerKind::kAdamW : OptimizerKind::kSgd;
}

ScheduleKind schedule_kind(const std::string& name) {
  if (name == "step") return ScheduleKind::kStep;
  if (name == "milestones") return ScheduleKind::kMilestones;
  return name == "cosine" ? ScheduleKind::kCosine : ScheduleKind::kConstant;
}

}  // namespace

std::string sampler_spec(const TrainSettings& s) {
  return s.sampler == "pk" ? fmt::format("pk:k={}", s.per_class) : s.sampler;
}

ModelDescription model_description(const TrainSettings& s) {
  ModelDescription model;
  model.arch = s.arch;
  model.pool = s.pool;
  model.gem_p = s.gem_p;
  model.dim = s.dim;
  model.stride_in_1x1 = s.stride_in_1x1;
  std::copy_n(s.input_mean.begin(), 3, model.input_mean.begin());
  std::copy_n(s.input_std.begin(), 3, model.input_std.begin());
  model.resize = s.resize;
  model.stretch = s.stretch;
  model.crop = s.image_size;
  model.upright = read_data_spec(s.data).get("exif", "ignore") == "turn";
  return model;
}

AugmentOptions augment_options(const TrainSettings& s) {
  return parse_augment(s.augment, center_crop(s.image_size, s.resize, s.stretch));
}

LoaderOptions loader_options(const TrainSettings& settings, std::uint64_t seed) {
  LoaderOptions options;
  options.workers = settings.workers;
  options.cache_bytes = settings.cache << 20;
  options.max_bad = settings.max_bad;
  options.seed = seed;
  options.end_epoch = settings.epochs;
  return options;
}

EmbedOptions embed_options(const TrainSettings& settings) {
  EmbedOptions options;
  options.workers = settings.workers;
  options.skip_bad = settings.max_bad != 0;
  return options;
}

TrainerOptions trainer_options(const TrainSettings& s, std::uint64_t seed, std::int64_t steps,
                               std::int64_t classes) {
  const auto in_steps = [&](double epochs) {
    return static_cast<std::int64_t>(std::llround(epochs * static_cast<double>(steps)));
  };
  TrainerOptions options;
  options.model = model_description(s);
  options.batchnorm = s.bn == "frozen" ? BatchNormMode::kRunning : BatchNormMode::kBatch;
  options.orthogonal_embedding = s.embedding_start == "orthogonal";
  options.loss = parse_loss(s.loss);
  options.optimizer.kind = optimizer_kind(s.optimizer);
  options.optimizer.beta1 = s.beta1;
  options.optimizer.beta2 = s.beta2;
  options.optimizer.momentum = s.momentum;
  options.optimizer.nesterov = s.nesterov;
  options.optimizer.clip_norm = s.clip_norm;
  options.learning.weight_decay = s.weight_decay;
  options.learning.decays_norms = !s.no_decay_norms;
  options.learning.embedding_rate = s.embedding_rate;
  options.frozen = frozen_beginnings(s.arch, s.freeze);
  options.learning.proxy_rate = s.proxy_rate;
  // Without steps there is nothing that warm-up or cosine could be fitted to.
  if (s.epochs > 0) options.schedule.kind = schedule_kind(s.schedule);
  options.schedule.rate = s.lr;
  options.schedule.warmup = in_steps(s.warmup);
  options.schedule.factor = s.drop_factor;
  options.schedule.every = in_steps(s.drop_every);
  for (const double epoch : s.drop_at) options.schedule.milestones.push_back(in_steps(epoch));
  options.schedule.total = in_steps(static_cast<double>(s.epochs));
  options.schedule.floor = s.lr_floor;
  options.batch = s.batch;
  options.chunk = s.chunk;
  options.memory_batches = s.memory;
  options.classes = classes;
  options.seed = seed;
  options.precision = precision_of(s.precision);
  options.capture = s.graph == "on";
  return options;
}

}  // namespace rk
