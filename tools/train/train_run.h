// A training run in its folder: epochs of steps, evaluation on held-out classes, checkpoints, the
// record.
//
// Several processes that share the batches do the same steps; the first one alone evaluates, writes
// and speaks. Every call of theirs to one another is made by all.
//
// The state is saved after every epoch, every --save-every minutes, when a signal asks to stop
// (after the step under way) and before an error ends the run, and continues from there bit for
// bit. Only divergence saves nothing, nor does an error within a step, whose state is neither that
// of before nor that of after it. Whatever is wrong with data, settings or checkpoint is found by
// the constructor, which writes nothing; what a save takes, memory and disk, is asked for before
// the first step.
#pragma once

#include "data/loader/loader.h"
#include "tools/cli/cli.h"
#include "tools/common/image_check.h"
#include "tools/common/shared_bad.h"
#include "tools/train/fit_trainer.h"
#include "tools/train/still_loss.h"
#include "tools/train/train_record.h"
#include "tools/train/train_settings.h"
#include "training/embed.h"
#include "weights/run_folder.h"

#include <nlohmann/json.hpp>

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rk {

// What a run is given beside its settings.
struct TrainPlan {
  nlohmann::ordered_json settings;         // resolved, for checkpoints
  std::string settings_toml;               // the same, for people and as a recipe
  std::unique_ptr<Checkpoint> checkpoint;  // to go on from; null: from the beginning
  std::unique_ptr<Checkpoint> weights;     // to start from, where there is nothing to go on from
  std::unique_ptr<FolderLock> lock;        // of the first process alone
  bool last_damaged = false;               // last.h5 is not to be rotated over the valid one
  // Makes --batch what the classes fill, in the settings and here; null: it is somebody's choice.
  std::function<void(TrainPlan&, std::int64_t batch)> choose_batch;
  // Makes --chunk what fits in memory, in the settings and here; null: batch or chunk are
  // somebody's choice and stay.
  std::function<void(TrainPlan&, std::int64_t chunk)> choose_chunk;
};

class TrainRun {
 public:
  TrainRun(const Context& context, const CommonOptions& common, const TrainSettings& settings,
           TrainPlan plan);

  // Throws Interrupted after saving, DivergedError leaving the checkpoints as they are.
  void execute();

 private:
  const Dataset* held_out() const { return test_data_ ? &*test_data_ : nullptr; }
  void fit_batch();
  void start_from_weights();
  void start_from_checkpoint();
  void describe() const;
  void prepare_folder();
  void record_origin() const;
  void train_epoch();
  void advance(std::int64_t next, std::int64_t batches);
  // The results of all steps that have begun, before the trainer's state is looked at.
  void finish_steps();
  const Batch* fetch();  // the loader's next; null: failure_
  void after_step(const StepResult& result);
  // What a signal is answered with while `what` is done, which is `seconds` long (0: not known).
  void announce(const std::string& what, double seconds) const;
  // Of the whole run, at this epoch's pace: "loss 0.2310, run 1:02:10 left".
  std::string progress_note(double seconds, std::int64_t steps) const;
  // Of the whole run, where `steps` steps took so many seconds.
  double seconds_left(double seconds, std::int64_t steps) const;
  // `seconds` for the epoch's last `steps` steps; fewer than all where the run was resumed in it.
  void finish_epoch(double seconds, std::int64_t steps);
  // The metrics of the held-out classes, and under "train" those of the training sample; an empty
  // object where nothing is held out.
  nlohmann::ordered_json evaluate_epoch();
  // An empty object in all processes but the first. what: "held-out", "training".
  nlohmann::ordered_json evaluate_images(const Dataset& data, const char* what);
  [[noreturn]] void fail_evaluation(const char* what) const;
  // Whether --patience epochs went by without a better one: the first process's word.
  bool out_of_patience() const;
  std::string why_over() const;            // that all epochs are done, or that patience is
  std::uint64_t checkpoint_bytes() const;  // of one
  std::uint64_t folder_bytes() const;
  // Tells the processes of one another's unreadable pictures; more than --max-bad end the run.
  void share_bad_images();
  // Of the pictures that the run knew for unreadable, those that still are.
  std::vector<BadImage> known_bad() const;
  void rehearse_saving() const;  // DeviceError where there is no memory for it
  // Whether a signal asked any of the processes to stop.
  bool asked_to_stop();
  void record(nlohmann::ordered_json entry, const nlohmann::ordered_json& timing);
  void require_sound() const;
  std::vector<std::byte> checkpoint() const;
  std::vector<std::byte> state() const;  // the same of what is sound; else DivergedError
  void save_as_last(std::span<const std::byte> bytes);
  void save_if_due();
  void save_before_leaving();
  // Where this or another process has met an error: leaves together, after saving.
  void leave_if_failed();
  std::string resume_command() const;
  [[noreturn]] void stop();
  void print_summary() const;
  nlohmann::ordered_json result() const;
  void say(const std::string& line) const;        // to standard output
  void tell_user(const std::string& line) const;  // to standard error

  const Context& context_;
  const CommonOptions& common_;
  ProcessGroup& processes_;
  const TrainSettings& settings_;
  TrainPlan plan_;
  Dataset train_data_;
  std::optional<Dataset> test_data_;
  std::optional<Dataset> train_sample_;  // evaluated beside test_data_
  std::unique_ptr<Sampler> sampler_;     // of whole batches
  std::unique_ptr<Sampler> share_;       // of this process's part of them
  LoadingBytes loading_;
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<Embedder> embedder_;
  std::unique_ptr<Loader> loader_;
  const Batch* next_batch_ = nullptr;  // the loader's present one, of the step to come
  bool stepping_ = false;              // a step has begun and has no result
  std::int64_t best_epoch_ = 0;        // of best.h5; 0: there is none
  bool compared_ = false;              // some epoch has a value of --monitor
  std::exception_ptr failure_;         // of the loader: to be thrown between two steps
  FileCalls files_;

  RunState run_;
  std::string source_sha256_;  // of the weights it all began with
  TrainRecord record_;         // run_.history and how long things took
  UnreadableImages unreadable_;
  SharedBadImages bad_;                // beside loader_'s own
  double waited_before_ = 0;           // for images, in the epochs before
  std::int64_t skipped_held_out_ = 0;  // images that cannot be read
  StillLoss still_loss_;
  double eval_seconds_ = 0;       // of the last evaluation
  std::int64_t saved_step_ = -1;  // of the newest checkpoint in the folder; -1: none yet
  double step_seconds_ = 0, save_seconds_ = 0;      // of the last ones; 0: none yet
  std::chrono::steady_clock::time_point saved_at_;  // or tried to; before that, the first step
  bool resumed_from_last_ = false;                  // from last.h5, not from another of the folder
  bool prepared_ = false;                           // the folder is there and ours
};

}  // namespace rk
