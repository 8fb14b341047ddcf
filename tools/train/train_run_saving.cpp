// What a run saves, and how it ends before its last epoch: by a signal, an error or divergence.
#include "tools/train/train_run.h"

#include "engine/base/error.h"
#include "engine/system/signals.h"
#include "tools/cli/flags/shell_word.h"
#include "tools/cli/messages.h"
#include "tools/train/run/resume.h"

#include <fmt/format.h>

#include <exception>
#include <utility>

namespace rk {
namespace {

std::string resume_command(const CommonOptions& common, const std::string& folder) {
  const int processes = common.processes->size();
  std::string command = fmt::format("{}{} --out {} --resume auto",
                                    processes > 1 ? fmt::format("mpirun -n {} ", processes) : "",
                                    shell_word(common.program), shell_word(folder));
  if (common.asked_device != "auto") command += " --device " + common.asked_device;
  if (!common.json.empty()) command += " --json " + shell_word(common.json);
  return command;
}

}  // namespace

void TrainRun::require_good_state() {
  steps_->finish();
  maker_.require_good(run_);
}

std::vector<std::byte> TrainRun::checkpoint() const {
  if (!steps_) return maker_.make(run_);
  RunState run = run_;
  run.bad_images = bad_.indices(steps_->bad_images());
  return maker_.make(std::move(run));
}

std::vector<std::byte> TrainRun::sound_checkpoint() {
  maker_.require_sound(run_);
  return checkpoint();
}

void TrainRun::save_epoch(bool best, RunState trained) {
  std::vector<std::byte> bytes;
  // best.h5 first: a run killed before last.h5 is written repeats this epoch with the same result.
  try {
    bytes = checkpoint();
    saver_.require_own_folder();
    if (best) saver_.save_best(bytes, run_.step);
  } catch (...) {
    run_ = std::move(trained);  // saved on leaving; a resume evaluates it again and finds it best
    throw;
  }
  if (best) best_.wrote(run_.epoch);
  saver_.save_last(bytes, run_.step);
  saver_.require_own_folder();
  record_.write();
}

void TrainRun::save_if_due() {
  if (settings_.save_every == 0) return;
  const bool due = processes_.first() && saver_.minutes_since() >= settings_.save_every;
  if (processes_.all_reduce_max(due ? 1 : 0) == 0) return;
  require_good_state();
  share_bad_images();
  if (!processes_.first()) return;
  try {
    saver_.save_last(checkpoint(), run_.step);
  } catch (const InputError& error) {
    // The next save may succeed, as may the one at the end of the epoch.
    saver_.restart_clock();
    tell_user(fmt::format("not saved after step {}: {}", run_.step, error.what()));
  }
}

void TrainRun::save_before_leaving() {
  if (!processes_.first() || run_.step == 0) return;
  const std::string before = saver_.saved_before();
  if (steps_->under_way()) {
    // Statistics, memory and some parameters may already be from the failed step; only the last
    // save has a consistent state.
    tell_user(fmt::format("step {} failed half done and is not saved; {}", run_.step + 1, before));
    return;
  }
  if (run_.step == saver_.saved_step()) return;
  try {
    saver_.save_last(sound_checkpoint(), run_.step);
    tell_user(fmt::format("saved after step {}; once what follows is mended, go on with: {}",
                          run_.step, resume_command(common_, settings_.out)));
  } catch (const std::exception& error) {
    tell_user(fmt::format("not saved after step {}: {}; {}", run_.step, error.what(), before));
  }
}

void TrainRun::leave_if_failed(const std::exception_ptr& ours) {
  // The first of the processes that failed reports its error.
  const int mine = ours ? processes_.size() - processes_.rank() : 0;
  const int reporting = processes_.all_reduce_max(mine);
  if (reporting == 0) return;
  require_good_state();
  bad_.share(steps_->bad_images());
  failed_together_ = true;
  if (reporting == mine) std::rethrow_exception(ours);
  throw ReportedByAnother();
}

void TrainRun::stop() {
  const bool keeps = saver_.took_folder();  // otherwise there is nothing worth keeping yet
  if (keeps) {
    require_good_state();
    bad_.share(steps_->bad_images());
    if (processes_.first()) saver_.save_last(checkpoint(), run_.step);
  }
  processes_.end_together();
  if (!processes_.first()) throw ReportedByAnother();
  if (!keeps) stop_if_interrupted();
  throw Interrupted(fmt::format("stopped {}; saved; go on with: {}", place_of(run_),
                                resume_command(common_, settings_.out)));
}

}  // namespace rk
