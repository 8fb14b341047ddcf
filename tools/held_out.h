// The classes that a run is evaluated on after every epoch: none of them is trained on.
#pragma once

#include "data/dataset.h"
#include "tools/train_settings.h"

#include <optional>

namespace rk {

// --test-data, or the split of --data that is held out; nothing for --test-data none. UsageError
// where --data holds nothing out.
std::optional<Dataset> open_held_out(const TrainSettings& settings);

}  // namespace rk
