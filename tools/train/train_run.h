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

#include "data/loader/loader.h"
#include "tools/cli/cli.h"
#include "tools/common/image_check.h"
#include "tools/common/shared_bad.h"
#include "tools/train/epoch_evaluation.h"
#include "tools/train/run_saver.h"
#include "tools/train/settings/setting_table.h"
#include "tools/train/settings/train_settings.h"
#include "tools/train/still_loss.h"
#include "tools/train/train_record.h"
#include "tools/train/trainer_within_memory.h"
#include "weights/run_folder.h"

#include <nlohmann/json.hpp>

#include <exception>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace rk {

// What a run starts from besides its settings.
struct RunStart {
  std::unique_ptr<Checkpoint> checkpoint;  // to resume from; null: a new run
  std::unique_ptr<Checkpoint> weights;     // initial weights of a new run
  std::unique_ptr<FolderLock> lock;        // only in the first process
  bool last_damaged = false;               // do not rotate last.h5 over the valid previous.h5
  // Settings other than those of the checkpoint: name and, for the user, a line each.
  std::vector<std::pair<std::string, std::string>> changes;
  // Whether the run may set --batch to what the classes can fill, --chunk to what fits in memory.
  bool open_batch = false, open_chunk = false;
};

class TrainRun {
 public:
  // settings: resolved; those that `start` leaves open may change. table: of these settings, as
  // which checkpoints and settings.toml keep them.
  TrainRun(const Context& context, const CommonOptions& common, TrainSettings& settings,
           const SettingTable& table, RunStart start);

  // Throws Interrupted after saving, DivergedError leaving the checkpoints as they are.
  void execute();

 private:
  bool holds_out() const { return evaluation_.held_out() != nullptr; }
  void fit_batch();
  void require_same_start() const;  // in all processes
  void start_from_weights();
  void start_from_checkpoint();
  void describe() const;
  void prepare_folder();
  void record_origin() const;
  void require_room_to_save();
  bool is_over() const;
  void tell_changes(bool over) const;
  void finish_what_was_over();
  void open_loader();
  void begin();
  void train();
  void train_epoch();
  void advance(std::int64_t next, std::int64_t batches);
  // Waits for the results of all steps begun; call before reading the trainer's state.
  void finish_steps();
  const Batch* fetch();  // the loader's next batch; null: see failure_
  void after_step(const StepResult& result);
  // Sets the answer to a signal while `what` is done, which takes `seconds` (0: unknown).
  void announce(const std::string& what, double seconds) const;
  bool last_epoch() const { return settings_.epochs - run_.epoch < 2; }
  // Loss, and time left of the whole run at this epoch's pace: "loss 0.2310, run 1:02:10 left".
  std::string progress_note(double seconds, std::int64_t steps) const;
  // Seconds left of the whole run, if `steps` steps took `seconds`.
  double seconds_left(double seconds, std::int64_t steps) const;
  // `seconds` is the time of the epoch's last `steps` steps, fewer than all if the run was resumed
  // within the epoch.
  void finish_epoch(double seconds, std::int64_t steps);
  nlohmann::ordered_json evaluate();  // an epoch's entry; stops if a signal asks
  // Whether --patience epochs passed without a better one, as decided by the first process.
  bool out_of_patience() const;
  std::string why_over() const;            // all epochs are done, or patience ran out
  std::uint64_t checkpoint_bytes() const;  // of one checkpoint
  void list_bad_images(const std::vector<BadImage>& all);
  // Exchanges unreadable pictures between the processes; more than --max-bad end the run.
  void share_bad_images();
  // The pictures recorded as unreadable that still are.
  std::vector<BadImage> known_bad() const;
  void rehearse_saving() const;  // DeviceError if memory is too small
  void record(nlohmann::ordered_json entry, const nlohmann::ordered_json& timing);
  void require_sound() const;
  // Waits for all steps begun; what the processes then hold must be finite, and the same in all of
  // them. A collective call, for all of them or none must go on to save.
  void require_good_state();
  std::vector<std::byte> checkpoint() const;
  std::vector<std::byte> state() const;  // the same; DivergedError if not sound
  void save_if_due();
  void save_before_leaving();
  // Throws, in all processes, if one of them has met an error between two steps.
  void leave_if_failed();
  std::string resume_command() const;
  [[noreturn]] void stop();
  template <class E> [[noreturn]] void leave_unsaved(const E& error, const std::string& dump = "");
  void print_summary() const;
  nlohmann::ordered_json result() const;
  void say(const std::string& line) const;        // to standard output
  void tell_user(const std::string& line) const;  // to standard error

  const Context& context_;
  const CommonOptions& common_;
  ProcessGroup& processes_;
  TrainSettings& settings_;
  const SettingTable& table_;
  RunStart start_;
  Dataset train_data_;
  EpochEvaluation evaluation_;
  RunSaver saver_;
  std::unique_ptr<Sampler> sampler_;  // of whole batches
  std::unique_ptr<Sampler> share_;    // of this process's part of each batch
  LoadingBytes loading_;
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<Loader> loader_;
  const Batch* next_batch_ = nullptr;  // already fetched, for the next step
  bool stepping_ = false;              // a step has begun and has no result yet
  std::int64_t best_epoch_ = 0;        // of best.h5; 0: none
  bool compared_ = false;              // some epoch has a value of --monitor
  std::exception_ptr failure_;         // of the loader; thrown between two steps
  bool failed_together_ = false;       // all processes leave for the failure of one

  RunState run_;
  std::string source_sha256_;  // of the run's initial weights
  TrainRecord record_;         // run_.history with times
  UnreadableImages unreadable_;
  SharedBadImages bad_;       // known to all, besides loader_'s own
  double waited_before_ = 0;  // for images, in earlier epochs
  StillLoss still_loss_;
  double step_seconds_ = 0;         // of the last one; 0: none yet
  bool resumed_from_last_ = false;  // not from another checkpoint of the folder
  bool prepared_ = false;           // the folder exists and is ours
  bool own_table_ = true;           // a metrics.csv in the folder is of an earlier start
};

}  // namespace rk
