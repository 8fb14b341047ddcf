// The data on which a run is evaluated after every epoch: held-out classes, and a sample of the
// training classes. Either figure alone does not distinguish overfitting (Oi et al. 2021) from a
// hard task.
#pragma once

#include "data/sources/dataset.h"
#include "tools/train/settings/train_settings.h"

#include <cstdint>
#include <optional>

namespace rk {

// --test-data, or the held-out split of --data; nullopt for --test-data none. Throws UsageError if
// --data holds nothing out, InputError if it holds a single class, of which nothing can be.
std::optional<Dataset> open_held_out(const TrainSettings& settings);

// Whole classes of `train`, drawn by the seed: as many as are needed for `images` images, at least
// two. Equal seeds and data give equal samples, so a resumed run keeps its sample.
Dataset training_sample(const Dataset& train, std::int64_t images, std::uint64_t seed);

}  // namespace rk
