// --monitor: the metric of the held-out classes by which epochs are compared, and the epoch that
// best.h5 is of.
#pragma once

#include "tools/train/going_on.h"
#include "tools/train/train_settings.h"
#include "weights/checkpoint.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace rk {

// The metric of that name of an epoch's entry; nullopt where there is none, or it is undefined.
std::optional<double> metric_of(const nlohmann::ordered_json& entry, const std::string& name);

// Takes a complete epoch's value; whether it is the best so far, as the first one is.
bool take_value(RunState& run, double value, bool first);

// Goes through the history of a checkpoint by --monitor; whether any of its epochs has a value.
// Where they were compared by another metric, or on nothing, `run` takes what is the best by this
// one, which is said. held_out: whether anything is, now.
bool compare_again(RunState& run, const Checkpoint& checkpoint, const TrainSettings& settings,
                   bool held_out, const SayLine& say);

// The epoch of best.h5 of the run that goes on from `checkpoint`; 0 where it is not there, not
// whole or not of this run, which is said.
std::int64_t epoch_of_best(const RunState& run, const Checkpoint& checkpoint,
                           const TrainSettings& settings, bool held_out, const SayLine& say);

}  // namespace rk
