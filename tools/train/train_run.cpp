#include "tools/train/train_run.h"

#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/note.h"
#include "engine/system/signals.h"
#include "tools/cli/json_file.h"
#include "tools/cli/messages.h"
#include "tools/cli/progress.h"
#include "tools/common/image_check.h"
#include "tools/train/divergence.h"
#include "tools/train/monitor.h"
#include "tools/train/shared_signal.h"
#include "training/equal_processes.h"
#include "weights/atomic_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <filesystem>
#include <optional>
#include <utility>

namespace rk {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

void TrainRun::execute() {
  const bool over = is_over();
  if (processes_.first()) tell_changes(over);
  describe();
  require_equal_parameters(processes_, trainer_->parameters(), run_);
  if (over) {
    finish_what_was_over();
  } else {
    require_room_to_save();
    if (run_.step == 0 && processes_.first()) {
      check_images(context_, train_data_, settings_.max_bad, settings_.out, common_.quiet);
    }
    open_loader();
    begin();
    train();
    print_summary();
  }
  write_result(common_, context_.threads(), result());
}

bool TrainRun::is_over() const { return run_.epoch >= settings_.epochs || out_of_patience(); }

// Nothing is trained in a run that is over, whatever is asked for.
void TrainRun::tell_changes(bool over) const {
  for (const auto& [name, line] : start_.changes) {
    if (over) {
      note(fmt::format("--{}: has no effect on a run that is over", name));
    } else {
      tell("{}", line);
    }
  }
}

// A run that was killed between its last writes may have written only best.h5.
void TrainRun::finish_what_was_over() {
  prepare_folder();
  if (processes_.first()) {
    if (!resumed_from_last_) saver_.save_last(state(), run_.step);
    record_.write();
  }
  say(fmt::format("{}: {}", settings_.out, why_over()));
}

void TrainRun::open_loader() {
  LoaderOptions loading = loader_options(settings_, common_.seed);
  // Stopped during evaluation, a run goes on with the next epoch's pictures.
  const bool between = run_.batch >= sampler_->batches_per_epoch();
  loading.first_epoch = run_.epoch + (between ? 1 : 0);
  loading.first_batch = between ? 0 : run_.batch;
  loading.known_bad = known_bad();
  loader_ = std::make_unique<Loader>(train_data_, *share_, augment_options(settings_), loading);
}

// Evaluates what the run begins with, and makes the folder its own.
void TrainRun::begin() {
  if (run_.history.empty()) {
    ordered_json entry = {{"epoch", 0}, {"step", 0}};
    entry.update(evaluate());
    record(std::move(entry), {{"eval_seconds", evaluation_.seconds()}});
  }
  rehearse_saving();  // when all threads and buffers exist
  prepare_folder();
  if (processes_.first()) {
    write_atomic(fs::path(settings_.out) / "settings.toml", table_.toml());
    record_origin();
    record_.write();
  }
  saver_.restart_clock();
}

void TrainRun::train() {
  try {
    while (run_.epoch < settings_.epochs && !out_of_patience()) train_epoch();
  } catch (const DivergedError& error) {
    // Loss, gradient and parameters are equal bit for bit in all processes, so that all of them
    // arrive here.
    const std::string dump =
        processes_.first() && !trainer_->last_batch().indices.empty() && !saver_.lost_folder()
            ? dump_divergence(settings_.out, error.what(), *trainer_, train_data_,
                              trainer_->steps() + (stepping_ ? 1 : 0))
            : "";
    leave_unsaved(error, dump);
  } catch (const UnequalProcesses& error) {
    leave_unsaved(error);
  } catch (const Interrupted&) {
    throw;  // after saving
  } catch (...) {
    // All bad pictures known so far, including those that other processes have reported.
    if (processes_.first()) list_bad_images(bad_.with(loader_->bad_images()));
    save_before_leaving();
    if (failed_together_) processes_.end_together();
    throw;
  }
}

// Ends all processes with an error that they meet together, and that spoils what they hold.
template <class E> void TrainRun::leave_unsaved(const E& error, const std::string& dump) {
  processes_.end_together();
  if (!processes_.first()) throw ReportedByAnother();
  const std::string last = (fs::path(settings_.out) / kLastFile).string();
  std::error_code ignored;
  fail<E>("{}{}{}", error.what(), dump,
          fs::exists(last, ignored) ? "; the last good checkpoint is " + last : "");
}

void TrainRun::train_epoch() {
  const std::int64_t batches = sampler_->batches_per_epoch();
  const auto start = Clock::now();
  const std::int64_t first = run_.batch;
  if (step_seconds_ == 0 && first < batches) {
    tell_user(fmt::format("epoch {}/{}: the first of {} is under way", run_.epoch + 1,
                          settings_.epochs, counted(batches - first, "step")));
  }
  {
    // A run that was stopped while it evaluated has no steps left to show.
    Progress progress(fmt::format("epoch {}/{}", run_.epoch + 1, settings_.epochs),
                      (batches - first) * settings_.batch, "images",
                      common_.quiet || first == batches,
                      last_epoch() ? "loss 0.0000" : "loss 0.0000, run 00:00 left");
    while (run_.batch < batches) {
      const std::int64_t next = run_.batch + trainer_->steps_in_flight();
      if (next < batches) {
        advance(next, batches);
      } else {
        finish_steps();
      }
      if (run_.batch > first) {
        progress.update((run_.batch - first) * settings_.batch,
                        progress_note(seconds_since(start), run_.batch - first));
      }
      if (asked_to_stop(processes_)) {
        progress.finish();
        stop();
      }
      if (run_.batch < batches) save_if_due();
    }
  }
  share_bad_images();
  finish_epoch(seconds_since(start), batches - first);
}

void TrainRun::list_bad_images(const std::vector<BadImage>& all) {
  for (const std::string& line : unreadable_.update(all)) tell_user(line);
}

void TrainRun::share_bad_images() {
  const std::vector<BadImage>& all = bad_.gather(loader_->bad_images());
  if (!processes_.first()) return leave_if_failed();
  list_bad_images(all);
  try {
    require_few_bad(train_data_, all, allowed_bad(settings_.max_bad, train_data_.size()));
  } catch (const InputError&) {
    failure_ = std::current_exception();
  }
  leave_if_failed();
}

// Begins step `next` of an epoch of `batches` steps.
void TrainRun::advance(std::int64_t next, std::int64_t batches) {
  const Batch* batch = std::exchange(next_batch_, nullptr);
  if (batch == nullptr && !failure_) batch = fetch();
  leave_if_failed();
  expect(batch != nullptr && batch->epoch == run_.epoch && batch->index == next,
         "[train] the loader is not where the run is");
  stepping_ = true;
  announce("finishing the step under way", step_seconds_);
  const auto start = Clock::now();
  if (const std::optional<StepResult> result = trainer_->advance(*batch)) {
    step_seconds_ = seconds_since(start);
    after_step(*result);
  }
  stepping_ = trainer_->steps_in_flight() > 0;
  // Overlaps with the GPU's computation.
  if (!trainer_->copies_pixels() || next + 1 == batches) return;
  next_batch_ = fetch();
  if (next_batch_ != nullptr) trainer_->stage(*next_batch_);
}

void TrainRun::finish_steps() {
  while (const std::optional<StepResult> result = trainer_->finish()) after_step(*result);
  stepping_ = false;
}

const Batch* TrainRun::fetch() {
  try {
    return loader_->next();
  } catch (...) {
    failure_ = std::current_exception();
    return nullptr;
  }
}

std::string TrainRun::progress_note(double seconds, std::int64_t steps) const {
  std::string text = fmt::format("loss {:.4f}", run_.loss_sum / static_cast<double>(run_.batch));
  if (last_epoch()) return text;  // the progress bar shows it
  return text + fmt::format(", run {} left", clock_text(seconds_left(seconds, steps)));
}

double TrainRun::seconds_left(double seconds, std::int64_t steps) const {
  const std::int64_t epochs = settings_.epochs - run_.epoch;
  const auto batches = static_cast<double>(epochs * sampler_->batches_per_epoch() - run_.batch);
  return batches * seconds / static_cast<double>(steps) +
         static_cast<double>(epochs) * (evaluation_.seconds() + saver_.seconds());
}

void TrainRun::after_step(const StepResult& result) {
  // With a loss scale that is still too large, an overflow may reach the loss.
  if (std::isfinite(result.loss)) run_.loss_sum += result.loss;
  ++run_.batch;
  run_.step = trainer_->steps();
  if (result.valid_queries == 0) {
    note_first(
        "no positive",
        fmt::format("step {}: no image of the batch had another of its class to find, so that "
                    "nothing was learnt; said once",
                    run_.step));
  } else if (std::isfinite(result.loss) && still_loss_.add(result.loss)) {
    note_first(
        "still loss",
        fmt::format("step {}: the loss has been {:.4f} for {} batches on end, as it is where "
                    "all images are embedded in one place; if it stays there, begin anew "
                    "with a lower --lr or a longer --warmup; said once",
                    run_.step, result.loss, StillLoss::kSteps));
  }
}

void TrainRun::finish_epoch(double seconds, std::int64_t steps) {
  require_good_state();
  const auto batches = static_cast<double>(sampler_->batches_per_epoch());
  ordered_json entry = {
      {"epoch", run_.epoch + 1}, {"step", run_.step}, {"loss", run_.loss_sum / batches}};
  entry.update(evaluate());
  ordered_json timing = ordered_json::object();
  if (steps > 0) {
    timing["seconds"] = seconds;
    timing["images_per_second"] = static_cast<double>(steps * settings_.batch) / seconds;
    if (steps < sampler_->batches_per_epoch()) timing["timed_batches"] = steps;
  }
  timing["eval_seconds"] = evaluation_.seconds();
  timing["waited_for_images"] = loader_->waited_seconds() - waited_before_;
  waited_before_ = loader_->waited_seconds();
  const std::optional<double> value = metric_of(entry, settings_.monitor);
  const RunState trained = run_;
  const std::int64_t before = best_epoch_;
  // The newest epoch is the best if nothing is held out, or if no epoch has had a value yet.
  const bool best = value ? take_value(run_, *value, !compared_) : !holds_out() || !compared_;
  compared_ = compared_ || value.has_value();
  ++run_.epoch;
  run_.batch = 0;
  run_.loss_sum = 0;
  if (best) best_epoch_ = run_.epoch;
  record(std::move(entry), timing);
  if (!processes_.first()) return;
  const std::vector<std::byte> bytes = checkpoint();
  // best.h5 first: a run killed before last.h5 is written repeats this epoch with the same result.
  try {
    saver_.require_own_folder();
    if (best) saver_.save_best(bytes, run_.step);
  } catch (...) {
    run_ = trained;  // saved on leaving; a resume evaluates it again and finds it best
    best_epoch_ = before;
    throw;
  }
  saver_.save_last(bytes, run_.step);
  saver_.require_own_folder();
  record_.write();
  if (steps > 0 && run_.epoch < settings_.epochs) {
    const double left = seconds_left(seconds, steps);
    constexpr double kWorthSaying = 60;  // seconds
    if (left > kWorthSaying) {
      note_first("how long", fmt::format("the run takes another {}, by the pace of epoch {}",
                                         clock_text(left), run_.epoch));
    }
  }
  // Left by an earlier divergence that this run has overcome.
  std::error_code ignored;
  fs::remove(fs::path(settings_.out) / kDivergenceFile, ignored);
}

bool TrainRun::out_of_patience() const {
  const bool over = processes_.first() && holds_out() && settings_.patience > 0 &&
                    run_.since_best >= settings_.patience;
  return processes_.all_reduce_max(over ? 1 : 0) != 0;
}

std::string TrainRun::why_over() const {
  if (run_.epoch >= settings_.epochs) {
    return run_.epoch == 1 ? std::string("the one epoch is done; more with --epochs")
                           : fmt::format("all {} epochs are done; more with --epochs", run_.epoch);
  }
  return fmt::format(
      "stopped after epoch {}: {} has not risen for {}, as --patience {} asks; more with a larger "
      "--patience, or 0 for none",
      run_.epoch, settings_.monitor, counted(run_.since_best, "epoch"), settings_.patience);
}

ordered_json TrainRun::evaluate() {
  if (processes_.first() && prepared_) {
    announce("stopping the evaluation, which is repeated later", 0);
  }
  std::optional<ordered_json> entry = evaluation_.evaluate(run_.step);
  if (!entry) stop();
  return std::move(*entry);
}

void TrainRun::record(ordered_json entry, const ordered_json& timing) {
  run_.history.push_back(record_.add(std::move(entry), timing));
}

void TrainRun::announce(const std::string& what, double seconds) const {
  if (common_.quiet) return;
  const std::int64_t saved = saver_.saved_step();
  const std::int64_t lost = run_.step - std::max<std::int64_t>(saved, 0) + (stepping_ ? 1 : 0) +
                            trainer_->steps_in_flight();
  const std::string batches = counted(lost, "batch");
  const std::string how_long = seconds + saver_.seconds() > 0.5
                                   ? fmt::format(" (about {:.0f} s)", seconds + saver_.seconds())
                               : stepping_ && seconds == 0
                                   ? " (the first step: how long is not known)"
                                   : "";
  set_stop_words(
      {fmt::format(
           "{}, then saving to {}{}; Ctrl-C again within 5 seconds: at once, which loses {}", what,
           settings_.out, how_long, batches),
       fmt::format("stopped at once, which loses {} since the last save; {}", batches,
                   saved < 0 ? std::string("nothing was saved before")
                             : fmt::format("go on from step {} with --resume auto", saved))});
}

void TrainRun::print_summary() const {
  if (run_.epoch < settings_.epochs) say(why_over());
  if (holds_out()) {
    for (const std::string& line : record_.comparison(run_.best, best_epoch_)) say(line);
  }
  const auto exists = [&](const std::string& name) {
    std::error_code ignored;
    return fs::exists(fs::path(settings_.out) / name, ignored);
  };
  std::vector<std::string> files = {kBestFile,     kLastFile,       "metrics.jsonl",
                                    "metrics.csv", "settings.toml", "run.json"};
  // Somebody may have removed some of them.
  std::erase_if(files, [&](const std::string& name) {
    return !exists(name) || (name == kBestFile && best_epoch_ == 0) ||
           (name == "metrics.csv" && settings_.log != "csv");
  });
  for (std::string& name : files) {
    if (name == kLastFile && exists(kPreviousFile)) name += " (previous.h5: the one before)";
  }
  say(fmt::format("{}: {}", settings_.out, fmt::join(files, ", ")));
}

ordered_json TrainRun::result() const {
  return {{"out", settings_.out},
          {"epochs", run_.epoch},
          {"steps", run_.step},
          {"before", record_.first()},
          {"after", record_.last()},
          {"best", {{settings_.monitor, compared_ ? ordered_json(run_.best) : ordered_json()}}},
          {"settings", table_.values()}};
}

void TrainRun::say(const std::string& line) const {
  if (!common_.quiet) print("{}\n", one_line(line));
}

void TrainRun::tell_user(const std::string& line) const {
  if (!common_.quiet) tell("{}", line);
}

}  // namespace rk
