// --monitor: the metric of the held-out classes by which epochs are compared, and the epoch of
// best.h5.
#pragma once

#include "tools/train/run/resume.h"
#include "tools/train/settings/train_settings.h"
#include "weights/checkpoint.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace rk {

// The metric of that name in an epoch's entry; nullopt if it is missing or undefined.
std::optional<double> metric_of(const nlohmann::ordered_json& entry, const std::string& name);

// Takes the value of a complete epoch; returns whether it is the best so far, as the first one
// always is.
bool take_value(RunState& run, double value, bool first);

// Evaluates the history of a checkpoint by --monitor; returns whether any epoch has a value. If its
// epochs were compared by another metric, or on nothing, `run` takes the best value by this metric,
// and a line says so. held_out: whether anything is held out now.
bool compare_again(RunState& run, const Checkpoint& checkpoint, const TrainSettings& settings,
                   bool held_out, const SayLine& say);

// The epoch of best.h5 of `run`, which resumes from `checkpoint` with its present settings; 0, with
// a line saying why, if best.h5 is missing, damaged, of another run, or of an epoch that this run
// repeats with other settings.
std::int64_t epoch_of_best(const RunState& run, const Checkpoint& checkpoint,
                           const TrainSettings& settings, bool held_out, const SayLine& say);

}  // namespace rk
