// A run that resumes from a checkpoint: the checks before, and where it is.
#pragma once

#include "tools/train/settings/train_settings.h"
#include "weights/checkpoint.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace rk {

using SayLine = std::function<void(const std::string& line)>;

// Throws InputError if the data differ from the checkpoint's, or the held-out data from those that
// its epochs were compared on, unless --allow-changed-data is given and the run can continue with
// them; then says what changed. now: data, held_out and classes of the resuming run.
void accept_data(const Checkpoint& checkpoint, const RunState& now, const TrainSettings& settings,
                 const SayLine& say);

// Throws InputError if a count could exceed the limit of a readable checkpoint: each count grows at
// most by the number of steps left.
void require_countable(const Checkpoint& checkpoint, const TrainSettings& settings,
                       std::int64_t batches_per_epoch);

// The settings in which a resumed run differs from the original, each with a line that says so.
// Throws InputError for changes for which the saved state would make no sense.
std::vector<std::pair<std::string, std::string>> changed_settings(
    const nlohmann::ordered_json& before, const nlohmann::ordered_json& now,
    const Checkpoint& checkpoint);

// How far a run is: "before the first step", "after epoch 2", "after batch 4 of epoch 3".
std::string place_of(const RunState& run);

// Appends to `names` those of `more` that it lacks.
void add_classes(const std::vector<std::string>& more, std::vector<std::string>& names);

}  // namespace rk
