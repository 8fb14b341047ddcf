// A training run in its folder: epochs of steps, evaluation on held-out classes, checkpoints and
// the record.
//
// Several processes can share the batches and do the same steps; only the first one evaluates,
// writes files and prints. Every collective call must be made by all processes.
//
// The state is saved after every epoch, every --save-every minutes, when a signal asks to stop
// (after the current step) and before an error ends the run; a resumed run continues bit for bit.
// Nothing is saved after divergence, nor if the processes' parameters differ, nor after an error
// within a step, which leaves the state half updated. The constructor finds all errors in data,
// settings or checkpoint, and writes nothing; memory and disk space for saving are checked before
// the first step.
#pragma once

#include "tools/cli/cli.h"
#include "tools/train/run/bad_image_log.h"
#include "tools/train/run/best_tracker.h"
#include "tools/train/run/checkpoint_maker.h"
#include "tools/train/run/run_saver.h"
#include "tools/train/run/step_pipeline.h"
#include "tools/train/run/stop_messages.h"
#include "tools/train/run_summary.h"
#include "tools/train/settings/setting_table.h"
#include "tools/train/settings/train_settings.h"
#include "tools/train/train_record.h"
#include "tools/train/train_setup.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace rk {

class TrainRun {
 public:
  // settings: resolved; those that `start` leaves open may change. table: of these settings, as
  // which checkpoints and settings.toml keep them.
  TrainRun(const Context& context, const CommonOptions& common, TrainSettings& settings,
           const SettingTable& table, RunStart start);

  // Throws Interrupted after saving, DivergedError leaving the checkpoints as they are.
  void execute();

 private:
  void start_from_weights();
  void resume();
  void tell_changes(bool over) const;
  bool epochs_are_done() const;
  bool is_over() const;  // for all processes, as decided by the first one
  void finish_what_was_over();
  void require_room_to_save();
  void begin();
  void train();
  void train_epoch();
  void advance();  // by a step
  // `seconds` is the time of the epoch's last `steps` steps, fewer than all if the run was resumed
  // within the epoch.
  void finish_epoch(double seconds, std::int64_t steps);
  void save_epoch(bool best, RunState trained);
  nlohmann::ordered_json evaluate();  // an epoch's entry; stops if a signal asks
  // Seconds left of the whole run, if `steps` steps took `seconds`.
  double seconds_left(double seconds, std::int64_t steps) const;
  void announce(WorkUnderWay work) const;  // sets the answer to a signal
  void take_folder();
  void list_bad_images();
  // Exchanges unreadable pictures between the processes; more than --max-bad end the run.
  void share_bad_images();
  // Waits for all steps begun; what the processes then hold must be finite, and the same in all of
  // them. A collective call, for all of them or none must go on to save.
  void require_good_state();
  std::vector<std::byte> checkpoint() const;
  std::vector<std::byte> sound_checkpoint();  // DivergedError if the state is not
  void save_if_due();
  void save_before_leaving();
  // Throws, in all processes, if one of them has met an error between two steps. ours: that of this
  // process, null for none.
  void leave_if_failed(const std::exception_ptr& ours);
  [[noreturn]] void stop();
  template <class E> [[noreturn]] void leave_unsaved(const E& error, const std::string& dump = "");
  bool holds_out() const { return setup_.evaluation.held_out() != nullptr; }
  RunOutcome outcome() const { return {settings_, run_, record_, best_}; }
  void say(const std::string& line) const;        // to standard output
  void tell_user(const std::string& line) const;  // to standard error

  const Context& context_;
  const CommonOptions& common_;
  ProcessGroup& processes_;
  TrainSettings& settings_;
  const SettingTable& table_;
  RunStart start_;
  TrainSetup setup_;
  RunState run_;
  CheckpointMaker maker_;
  RunSaver saver_;
  TrainRecord record_;  // run_.history with times
  BadImageLog bad_;
  BestTracker best_;
  std::unique_ptr<StepPipeline> steps_;  // null in a run that is over
  bool failed_together_ = false;         // all processes leave for the failure of one
};

}  // namespace rk
