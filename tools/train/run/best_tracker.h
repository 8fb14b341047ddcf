// Which epoch of a run is the best by --monitor, and whether --patience has run out. Best value and
// epochs since are in the run's state, which checkpoints keep. Only the first process evaluates, so
// that only its answers count.
#pragma once

#include "tools/train/run/monitor.h"
#include "tools/train/run/resume.h"
#include "tools/train/settings/train_settings.h"
#include "weights/checkpoint.h"

#include <nlohmann/json.hpp>

#include <cstdint>

namespace rk {

class BestTracker {
 public:
  // holds_out: whether there are classes to compare epochs on. The settings must outlive this.
  BestTracker(const TrainSettings& settings, bool holds_out)
      : settings_(settings), holds_out_(holds_out) {}

  // Takes the history of `run`, which resumes from `checkpoint` (monitor.h says what is said).
  // owns_folder: whether best.h5 is looked at.
  void resume(RunState& run, const Checkpoint& checkpoint, bool owns_folder, const SayLine& say);
  // Takes the entry of an epoch that is complete; returns whether that is the best so far. The
  // newest is, if nothing is held out, or if no epoch has had a value yet.
  bool take(RunState& run, const nlohmann::ordered_json& entry);
  void wrote(std::int64_t epoch) { epoch_ = epoch; }  // as best.h5

  std::int64_t epoch() const { return epoch_; }  // of best.h5; 0: none
  bool compared() const { return compared_; }    // whether any epoch has a value
  bool out_of_patience(const RunState& run) const;

 private:
  const TrainSettings& settings_;
  bool holds_out_;
  std::int64_t epoch_ = 0;
  bool compared_ = false;
};

}  // namespace rk
