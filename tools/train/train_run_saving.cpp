// What a run saves, and how it ends before its last epoch: by a signal, an error or divergence.
#include "tools/train/train_run.h"

#include "engine/base/error.h"
#include "engine/system/signals.h"
#include "tools/cli/messages.h"
#include "tools/train/resume.h"
#include "training/equal_processes.h"
#include "weights/sealed_file.h"

#include <fmt/format.h>

#include <exception>
#include <limits>
#include <memory>
#include <new>

namespace rk {

std::uint64_t TrainRun::checkpoint_bytes() const {
  constexpr std::uint64_t kBeside = std::uint64_t{1} << 20;  // statistics, record, settings
  return trainer_->state_bytes() + kBeside;
}

void TrainRun::require_room_to_save() {
  if (checkpoint_bytes() > kMostSealedBytes) {
    fail<UsageError>(
        "--out {}: a checkpoint of this run takes {:.1f} GiB, and none of more than {} is read "
        "again; use a smaller --dim, a smaller --memory or fewer classes",
        settings_.out, static_cast<double>(checkpoint_bytes()) / (1 << 30), kMostSealedBytes >> 30);
  }
  if (!processes_.first()) return;
  constexpr std::int64_t kAny = std::numeric_limits<std::int32_t>::max();
  const std::int64_t saves = settings_.save_every > 0 ? kAny : settings_.epochs - run_.epoch;
  saver_.require_room(checkpoint_bytes(), saves);
}

void TrainRun::rehearse_saving() const {
  if (!processes_.first()) return;
  trainer_->download();
  try {
    // Reserves address space, which a limit may make scarce, for heaps of 64 MiB each that threads
    // of libraries create between now and the first save.
    const auto heaps = std::make_unique_for_overwrite<std::byte[]>(std::size_t{256} << 20);
    *const_cast<volatile std::byte*>(heaps.get()) = std::byte{};
    const std::vector<std::byte> bytes = checkpoint();
  } catch (const std::bad_alloc&) {
    fail<DeviceError>(
        "out of memory: a checkpoint cannot be put together beside the run, which takes twice its "
        "size; end what else runs here, raise the limit (ulimit -v), or use a smaller --batch or "
        "--image-size");
  }
}

// The last update may have made parameters infinite even if loss and gradient were finite.
void TrainRun::require_sound() const {
  if (trainer_->sound()) return;
  fail<DivergedError>(
      "training diverged: after step {} the network holds NaN, infinity or numbers beyond 1e12; "
      "lower --lr",
      run_.step);
}

void TrainRun::require_good_state() {
  finish_steps();
  trainer_->download();
  require_equal_parameters(processes_, trainer_->parameters(), run_);
  require_sound();
}

std::vector<std::byte> TrainRun::state() const {
  trainer_->download();
  require_sound();
  return checkpoint();
}

std::vector<std::byte> TrainRun::checkpoint() const {
  ModelDescription model = model_description(settings_);
  model.source_sha256 = source_sha256_;
  RunState run = run_;
  run.loss_scale = trainer_->loss_scale();
  if (loader_ != nullptr) {
    run.bad_images.clear();
    for (const BadImage& image : bad_.with(loader_->bad_images())) {
      run.bad_images.push_back(image.index);
    }
  }
  CheckpointWriter writer(model, run);
  trainer_->save(writer);
  return writer.finish();
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
  if (stepping_) {
    // Statistics, memory and some parameters may already be from the failed step; only the last
    // save has a consistent state.
    tell_user(fmt::format("step {} failed half done and is not saved; {}", run_.step + 1, before));
    return;
  }
  if (run_.step == saver_.saved_step()) return;
  try {
    saver_.save_last(state(), run_.step);
    tell_user(fmt::format("saved after step {}; once what follows is mended, go on with: {}",
                          run_.step, resume_command()));
  } catch (const std::exception& error) {
    saver_.go_on_from(run_.step);  // do not try again
    tell_user(fmt::format("not saved after step {}: {}; {}", run_.step, error.what(), before));
  }
}

void TrainRun::leave_if_failed() {
  // The first of the processes that failed reports its error.
  const int ours = failure_ ? processes_.size() - processes_.rank() : 0;
  const int reporting = processes_.all_reduce_max(ours);
  if (reporting == 0) return;
  require_good_state();
  bad_.gather(loader_->bad_images());
  failed_together_ = true;
  if (reporting == ours) std::rethrow_exception(failure_);
  throw ReportedByAnother();
}

void TrainRun::stop() {
  if (prepared_) {
    require_good_state();
    bad_.gather(loader_->bad_images());
    if (processes_.first()) saver_.save_last(checkpoint(), run_.step);
  }
  processes_.end_together();
  if (!processes_.first()) throw ReportedByAnother();
  if (!prepared_) stop_if_interrupted();  // nothing worth keeping yet
  throw Interrupted(
      fmt::format("stopped {}; saved; go on with: {}", place_of(run_), resume_command()));
}

std::string TrainRun::resume_command() const {
  return fmt::format("{} --out {} --resume auto", shell_word(common_.program),
                     shell_word(settings_.out));
}

}  // namespace rk
