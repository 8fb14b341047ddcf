// What is asked before a run goes on from a checkpoint.
#pragma once

#include "tools/train/train_settings.h"
#include "weights/checkpoint.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace rk {

using SayLine = std::function<void(const std::string& line)>;

// Refuses other data than the checkpoint's, and other held-out classes than those that its epochs
// were compared on, unless --allow-changed-data is given and the run can continue on them; says
// what changed. now: data, held_out and classes of the run that goes on. InputError.
void accept_data(const Checkpoint& checkpoint, const RunState& now, const TrainSettings& settings,
                 const SayLine& say);

// What is saved must be read again: each count of the checkpoint grows by the steps that are left
// at most. InputError.
void require_countable(const Checkpoint& checkpoint, const TrainSettings& settings,
                       std::int64_t batches_per_epoch);

// Of `more`, those that `names` lacks, behind them.
void add_classes(const std::vector<std::string>& more, std::vector<std::string>& names);

}  // namespace rk
