#include "tools/train/run/best_tracker.h"

#include <optional>

namespace rk {

void BestTracker::resume(RunState& run, const Checkpoint& checkpoint, bool owns_folder,
                         const SayLine& say) {
  compared_ = compare_again(run, checkpoint, settings_, holds_out_, say);
  if (owns_folder) epoch_ = epoch_of_best(run, checkpoint, settings_, holds_out_, say);
}

bool BestTracker::take(RunState& run, const nlohmann::ordered_json& entry) {
  const std::optional<double> value = metric_of(entry, settings_.monitor);
  const bool best = value ? take_value(run, *value, !compared_) : !holds_out_ || !compared_;
  compared_ = compared_ || value.has_value();
  return best;
}

bool BestTracker::out_of_patience(const RunState& run) const {
  return holds_out_ && settings_.patience > 0 && run.since_best >= settings_.patience;
}

}  // namespace rk
