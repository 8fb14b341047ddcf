// What a run is evaluated on after every epoch: classes that it is not trained on, and beside them
// some of those that it is. The one figure without the other does not tell overfitting (Oi et al.
// 2021) from a task that is hard.
#pragma once

#include "data/sources/dataset.h"
#include "tools/train/train_settings.h"

#include <cstdint>
#include <optional>

namespace rk {

// --test-data, or the split of --data that is held out; nothing for --test-data none. UsageError
// where --data holds nothing out.
std::optional<Dataset> open_held_out(const TrainSettings& settings);

// Classes of `train`, whole, drawn by the seed: as many as it takes for `images` images, at least
// two. Equal seeds and data give equal samples, so that a resumed run goes on with its own.
Dataset training_sample(const Dataset& train, std::int64_t images, std::uint64_t seed);

}  // namespace rk
