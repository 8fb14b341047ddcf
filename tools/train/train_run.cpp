#include "tools/train/train_run.h"

#include "data/images/augment.h"
#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/note.h"
#include "engine/base/printable.h"
#include "engine/system/signals.h"
#include "engine/system/usable_cores.h"
#include "tools/cli/json_file.h"
#include "tools/cli/messages.h"
#include "tools/cli/progress.h"
#include "tools/common/image_check.h"
#include "tools/train/divergence.h"
#include "tools/train/run_origin.h"
#include "tools/train/settings/train_options.h"
#include "tools/train/shared_signal.h"
#include "training/equal_processes.h"
#include "weights/atomic_file.h"
#include "weights/run_folder.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <limits>
#include <memory>
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

// share: of an epoch, during which no batch was ready.
std::string waiting_text(double share, const TrainSettings& settings) {
  const int workers = loading_threads(settings.workers);
  const std::string more =
      workers < usable_cores() ? fmt::format("more --workers (now {}), ", workers) : "";
  return fmt::format(
      "{:.0f} % of the time no pictures were ready to train on; {}a larger --cache (now {} MiB) or "
      "smaller files would help",
      100 * share, more, settings.cache);
}

}  // namespace

void TrainRun::execute() {
  // A run that has saved nothing yet begins, even if it is to train for 0 epochs.
  const bool over = saver_.saved_step() >= 0 && is_over();
  if (processes_.first()) tell_changes(over);
  const std::vector<std::string> lines =
      setup_.description(settings_, run_.classes, processes_.size());
  for (const std::string& line : lines) tell_user(line);
  require_equal_parameters(processes_, setup_.trainer->parameters(), run_);
  if (over) {
    finish_what_was_over();
  } else {
    require_room_to_save();
    begin();
    train();
    for (const std::string& line : summary_of(outcome(), holds_out() && run_.step > 0)) say(line);
  }
  write_result(common_, context_.threads(), result_of(outcome(), table_.values()));
}

// Nothing is trained in a run that is over, whatever is asked for; but its record is written, and
// what makes it over is told as the reason.
void TrainRun::tell_changes(bool over) const {
  for (const auto& [name, line] : start_.changes) {
    const bool is_reason =
        epochs_are_done() ? name == "epochs" : name == "patience" || name == "monitor";
    if (!over || name == "log") {
      tell_user(line);
    } else if (!is_reason) {
      note(fmt::format("--{}: has no effect on a run that is over", name));
    }
  }
}

bool TrainRun::epochs_are_done() const { return run_.epoch >= settings_.epochs; }

bool TrainRun::is_over() const {
  if (epochs_are_done()) return true;
  const bool out_of_patience = processes_.first() && best_.out_of_patience(run_);
  return processes_.all_reduce_max(out_of_patience ? 1 : 0) != 0;
}

// A run that was killed between its last writes may have written only best.h5.
void TrainRun::finish_what_was_over() {
  take_folder();
  if (processes_.first()) {
    if (!start_.from_last) saver_.save_last(sound_checkpoint(), run_.step);
    record_.write();
  }
  say(fmt::format("{}: {}", settings_.out, why_over(outcome())));
}

void TrainRun::take_folder() {
  // A metrics.csv of an earlier start would no longer be updated.
  saver_.take_folder(start_.own_table && settings_.log != "csv");
}

void TrainRun::require_room_to_save() {
  maker_.require_readable_size();
  if (!processes_.first()) return;
  constexpr std::int64_t kAny = std::numeric_limits<std::int32_t>::max();
  const std::int64_t saves = settings_.save_every > 0 ? kAny : settings_.epochs - run_.epoch;
  saver_.require_room(maker_.bytes(), saves);
}

// Looks at the pictures, evaluates what the run begins with, and makes the folder its own.
void TrainRun::begin() {
  if (run_.step == 0 && processes_.first()) {
    check_images(context_, setup_.data, settings_.max_bad, settings_.out,
                 center_crop(settings_.image_size, settings_.resize, settings_.stretch),
                 common_.quiet);
  }
  LoaderOptions loading = loader_options(settings_, common_.seed);
  // Stopped during evaluation, a run goes on with the next epoch's pictures.
  const bool between = run_.batch >= setup_.sampler->batches_per_epoch();
  loading.first_epoch = run_.epoch + (between ? 1 : 0);
  loading.first_batch = between ? 0 : run_.batch;
  loading.known_bad = bad_.still_bad(run_.bad_images);
  steps_ = std::make_unique<StepPipeline>(
      *setup_.trainer,
      std::make_unique<Loader>(setup_.data, *setup_.share, augment_options(settings_), loading),
      run_);
  if (run_.history.empty()) {
    ordered_json entry = {{"epoch", 0}, {"step", 0}};
    entry.update(evaluate());
    run_.history.push_back(
        record_.add(std::move(entry), {{"eval_seconds", setup_.evaluation.seconds()}}));
  }
  // When all threads and buffers exist.
  if (processes_.first()) maker_.rehearse([this] { return checkpoint(); });
  take_folder();
  if (processes_.first()) {
    write_atomic(fs::path(settings_.out) / kSettingsFile, table_.toml());
    write_origin(settings_.out, {.common = common_,
                                 .environment = run_.environment,
                                 .processes = processes_.size(),
                                 .train = setup_.data,
                                 .held_out = setup_.evaluation.held_out(),
                                 .epoch = run_.epoch,
                                 .step = run_.step,
                                 .resumed = saver_.saved_step() >= 0,
                                 .weights = settings_.weights,
                                 .weights_sha256 = maker_.source_sha256()});
    record_.write();
  }
  saver_.restart_clock();
  if (processes_.first() && settings_.epochs == 0) saver_.save_last(sound_checkpoint(), run_.step);
}

void TrainRun::train() {
  try {
    while (!is_over()) train_epoch();
  } catch (const DivergedError& error) {
    // Loss, gradient and parameters are equal bit for bit in all processes, so that all of them
    // arrive here.
    Trainer& trainer = *setup_.trainer;
    const std::string dump =
        processes_.first() && !trainer.last_batch().indices.empty() && !saver_.lost_folder()
            ? dump_divergence(settings_.out, error.what(), trainer, setup_.data,
                              trainer.steps() + (steps_->under_way() ? 1 : 0))
            : "";
    leave_unsaved(error, dump);
  } catch (const UnequalProcesses& error) {
    leave_unsaved(error);
  } catch (const Interrupted&) {
    throw;  // after saving
  } catch (...) {
    // All bad pictures known so far, including those that other processes have reported.
    if (processes_.first()) list_bad_images();
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
  const std::int64_t batches = setup_.sampler->batches_per_epoch();
  const auto start = Clock::now();
  const std::int64_t first = run_.batch;
  if (steps_->step_seconds() == 0 && first < batches) {
    tell_user(fmt::format("epoch {}/{}: the first of {} is under way", run_.epoch + 1,
                          settings_.epochs, counted(batches - first, "step")));
  }
  const bool last_epoch = settings_.epochs - run_.epoch < 2;
  // Loss, and time left of the whole run at this epoch's pace; the last epoch's bar shows that.
  const auto progress_note = [&] {
    std::string text = fmt::format("loss {:.4f}", run_.loss_sum / static_cast<double>(run_.batch));
    if (last_epoch) return text;
    const double left = seconds_left(seconds_since(start), run_.batch - first);
    return text + fmt::format(", run {} left", clock_text(left));
  };
  {
    // A run that was stopped while it evaluated has no steps left to show.
    Progress progress(fmt::format("epoch {}/{}", run_.epoch + 1, settings_.epochs),
                      (batches - first) * settings_.batch, "images",
                      common_.quiet || first == batches,
                      last_epoch ? "loss 0.0000" : "loss 0.0000, run 00:00 left");
    while (run_.batch < batches) {
      if (steps_->next_batch() < batches) {
        advance();
      } else {
        steps_->finish();
      }
      if (run_.batch > first) {
        progress.update((run_.batch - first) * settings_.batch, progress_note());
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

void TrainRun::advance() {
  steps_->fetch();
  leave_if_failed(steps_->failure());
  const double seconds = steps_->step_seconds();
  announce({.what = "finishing the step under way",
            .seconds = seconds,
            .begun = setup_.trainer->steps_in_flight() + 1,
            .first_step = seconds == 0});
  steps_->advance();
  if (steps_->next_batch() < setup_.sampler->batches_per_epoch()) steps_->prefetch();
}

void TrainRun::list_bad_images() {
  for (const std::string& line : bad_.list(steps_->bad_images())) tell_user(line);
}

void TrainRun::share_bad_images() {
  bad_.share(steps_->bad_images());
  std::exception_ptr failure = steps_->failure();
  if (processes_.first()) {
    list_bad_images();
    try {
      bad_.require_few(settings_.max_bad);
    } catch (const InputError&) {
      failure = std::current_exception();
    }
  }
  leave_if_failed(failure);
}

double TrainRun::seconds_left(double seconds, std::int64_t steps) const {
  const std::int64_t epochs = settings_.epochs - run_.epoch;
  const auto batches =
      static_cast<double>(epochs * setup_.sampler->batches_per_epoch() - run_.batch);
  return batches * seconds / static_cast<double>(steps) +
         static_cast<double>(epochs) * (setup_.evaluation.seconds() + saver_.seconds());
}

void TrainRun::finish_epoch(double seconds, std::int64_t steps) {
  require_good_state();
  const std::int64_t batches = setup_.sampler->batches_per_epoch();
  ordered_json entry = {{"epoch", run_.epoch + 1},
                        {"step", run_.step},
                        {"learning_rate", setup_.trainer->rate_of(run_.step - 1)},
                        {"loss", run_.loss_sum / static_cast<double>(batches)}};
  entry.update(evaluate());
  ordered_json timing = ordered_json::object();
  if (steps > 0) {
    timing["seconds"] = seconds;
    timing["images_per_second"] = static_cast<double>(steps * settings_.batch) / seconds;
    if (steps < batches) timing["timed_batches"] = steps;
  }
  timing["eval_seconds"] = setup_.evaluation.seconds();
  timing["waited_for_images"] = steps_->take_waited_seconds();
  RunState finished = run_;  // until it is whole, what an error saves is the state before it
  const bool best = best_.take(finished, entry);
  ++finished.epoch;
  finished.batch = 0;
  finished.loss_sum = 0;
  finished.history.push_back(record_.add(std::move(entry), timing));
  RunState trained = std::exchange(run_, std::move(finished));
  if (!processes_.first()) return;
  announce({});  // the evaluation is over
  save_epoch(best, std::move(trained));
  announce({});  // nothing since the last save can be lost
  if (const double waited = timing["waited_for_images"]; steps > 0 && waited > seconds / 4) {
    note_first("waiting", waiting_text(waited / seconds, settings_));
  }
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

ordered_json TrainRun::evaluate() {
  if (processes_.first() && saver_.took_folder()) {
    announce({.what = "stopping the evaluation, which is repeated later"});
  }
  std::optional<ordered_json> entry = setup_.evaluation.evaluate(run_.step);
  if (!entry) stop();
  return std::move(*entry);
}

void TrainRun::announce(WorkUnderWay work) const {
  if (common_.quiet) return;
  work.seconds += saver_.seconds();
  work.shared = !processes_.alone();
  set_stop_messages(stop_messages(work, run_.step, saver_.saved_step(), settings_.out));
}

void TrainRun::say(const std::string& line) const {
  if (!common_.quiet) print("{}\n", one_line(line));
}

void TrainRun::tell_user(const std::string& line) const {
  if (!common_.quiet) tell("{}", line);
}

}  // namespace rk
