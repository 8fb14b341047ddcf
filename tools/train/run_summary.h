// What `train` says when a run ends: why, what the epochs gave, which files hold it.
#pragma once

#include "tools/train/run/best_tracker.h"
#include "tools/train/settings/train_settings.h"
#include "tools/train/train_record.h"
#include "weights/run_state.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace rk {

struct RunOutcome {
  const TrainSettings& settings;
  const RunState& run;
  const TrainRecord& record;
  const BestTracker& best;
};

std::string why_over(const RunOutcome& outcome);  // all epochs are done, or patience ran out
// Lines. compared: whether epochs were compared on held-out classes.
std::vector<std::string> summary_of(const RunOutcome& outcome, bool compared);
// What --json holds. settings: all, by name.
nlohmann::ordered_json result_of(const RunOutcome& outcome, nlohmann::ordered_json settings);

}  // namespace rk
