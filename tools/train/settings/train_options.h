// The options of network, trainer, loader and evaluation that follow from the settings of `train`,
// once resolve() has made them explicit.
#pragma once

#include "data/images/augment.h"
#include "data/loader/loader.h"
#include "tools/train/settings/train_settings.h"
#include "training/embed.h"
#include "training/trainer.h"
#include "weights/model_description.h"

#include <cstdint>
#include <string>

namespace rk {

std::string sampler_spec(const TrainSettings& settings);  // as make_sampler() takes it
ModelDescription model_description(const TrainSettings& settings);
AugmentOptions augment_options(const TrainSettings& settings);
LoaderOptions loader_options(const TrainSettings& settings, std::uint64_t seed);
EmbedOptions embed_options(const TrainSettings& settings);  // for the held-out classes
// steps: of one epoch; classes: of the training set.
TrainerOptions trainer_options(const TrainSettings& settings, std::uint64_t seed,
                               std::int64_t steps, std::int64_t classes);

}  // namespace rk
