#include "tools/train/train_run.h"

#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/note.h"
#include "engine/system/read_file.h"
#include "engine/system/signals.h"
#include "layers/graphs/graph_runner.h"
#include "tools/cli/json_file.h"
#include "tools/cli/messages.h"
#include "tools/cli/progress.h"
#include "tools/common/image_check.h"
#include "tools/train/divergence.h"
#include "tools/train/going_on.h"
#include "tools/train/monitor.h"
#include "tools/train/run_origin.h"
#include "tools/train/shared_signal.h"
#include "tools/train/train_description.h"
#include "training/equal_processes.h"
#include "training/memory_fit.h"
#include "training/model_io.h"
#include "weights/atomic_file.h"
#include "weights/sealed_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <filesystem>
#include <limits>
#include <new>
#include <numeric>
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

TrainRun::TrainRun(const Context& context, const CommonOptions& common, TrainSettings& settings,
                   const SettingTable& table, TrainPlan plan)
    : context_(context),
      common_(common),
      processes_(*common.processes),
      settings_(settings),
      table_(table),
      plan_(std::move(plan)),
      train_data_(open_dataset(settings.data, Split::kTrain)),
      evaluation_(context, common, settings, train_data_),
      saver_(settings.out, std::move(plan_.lock), plan_.last_damaged),
      record_(settings.out, {.epochs = settings.epochs,
                             .monitor = settings.monitor,
                             .csv = settings.log == "csv",
                             .quiet = common.quiet}),
      unreadable_(settings.out),
      bad_(processes_, train_data_) {
  fit_batch();
  sampler_ = make_sampler(sampler_spec(settings), train_data_, settings.batch, common.seed,
                          settings.batches);
  check_shares(settings, processes_.size());
  share_ = make_batch_share(*sampler_, processes_.rank(), processes_.size());
  TrainerOptions options = trainer_options(settings, common.seed, sampler_->batches_per_epoch(),
                                           static_cast<std::int64_t>(train_data_.classes().size()));
  options.processes = &processes_;
  std::optional<Progress> progress;
  options.preparing = [&](std::int64_t done, std::int64_t all) {
    if (!progress) progress.emplace("preparing the GPU", all, "graphs", common.quiet);
    progress->update(done);
  };
  const Dataset* held_out = evaluation_.held_out();
  loading_ = loading_bytes(settings, train_data_, held_out, processes_.size());
  trainer_ = fit_trainer({context, settings, held_out, loading_, plan_.open_chunk}, options);
  progress.reset();
  evaluation_.plan(trainer_->parameters(), options.precision);
  run_.seed = common.seed;
  run_.data = train_data_.identity();
  run_.held_out = held_out != nullptr ? held_out->identity() : "nothing";
  run_.environment = fmt::format("Rankine {}, {}", RK_VERSION, context.describe());
  if (context.on_gpu()) run_.environment += fmt::format(", {}", plan_environment(context));
  if (!processes_.alone()) {
    run_.environment += fmt::format(", {} processes", processes_.size());
  }
  run_.settings = table_.values().dump();
  run_.classes = train_data_.class_names();
  if (plan_.checkpoint) {
    start_from_checkpoint();
  } else if (plan_.weights) {
    start_from_weights();
  }
}

// Reduces a batch size that the user did not choose if it needs more classes than there are.
void TrainRun::fit_batch() {
  if (!plan_.open_batch || settings_.sampler != "pk") return;
  const auto classes = static_cast<std::int64_t>(train_data_.classes().size());
  const auto step = std::max<std::int64_t>(std::lcm(settings_.per_class, processes_.size()), 1);
  const std::int64_t most = classes * settings_.per_class / step * step;
  if (classes < 2 || most < step || settings_.batch <= most) return;
  if (processes_.first()) {
    note(
        fmt::format("--batch {}: {} images of each of {} of {}, as {} would take {}; "
                    "--batch chooses otherwise",
                    most, settings_.per_class, counted(most / settings_.per_class, "class"),
                    train_data_.name(), settings_.batch, settings_.batch / settings_.per_class));
  }
  settings_.batch = most;
}

void TrainRun::start_from_weights() {
  const bool whole = load_starting_point(*plan_.weights, trainer_->parameters());
  trainer_->upload();
  source_sha256_ = plan_.weights->sha256();
  add_classes(plan_.weights->run().classes, run_.classes);
  std::string left;
  if (!whole && plan_.weights->weight_dims("embedding.weight")) {
    left = " (but not its embedding layer, which has another size)";
  } else if (plan_.weights->weight_dims("fc.weight")) {
    left = " (its classifier is left out)";
  }
  tell_user(fmt::format("weights: {}{}", settings_.weights, left));
  plan_.weights.reset();
}

void TrainRun::start_from_checkpoint() {
  const Checkpoint& checkpoint = *plan_.checkpoint;
  const SayLine say = [this](const std::string& line) { tell_user(line); };
  require_countable(checkpoint, settings_, sampler_->batches_per_epoch());
  accept_data(checkpoint, run_, settings_, say);
  const bool same_data = checkpoint.run().data == run_.data;
  if (!trainer_->load(checkpoint, same_data)) {
    tell_user(same_data ? "memory: the checkpoint holds none of this size; it begins empty"
                        : "memory: begins empty, for the checkpoint's is of the earlier data");
  }
  const std::string& before = checkpoint.run().environment;
  if (!before.empty() && before != run_.environment) {
    tell_user(fmt::format(
        "going on under {} what began under {}: not equal to the last bit to a run that was not "
        "interrupted",
        run_.environment, before));
  }
  RunState now = checkpoint.run();
  compared_ = compare_again(now, checkpoint, settings_, holds_out(), say);
  best_epoch_ =
      processes_.first() ? epoch_of_best(now, checkpoint, settings_, holds_out(), say) : now.epoch;
  now.settings = std::move(run_.settings);
  now.environment = std::move(run_.environment);
  now.data = std::move(run_.data);
  now.held_out = std::move(run_.held_out);
  add_classes(now.classes, run_.classes);
  now.classes = std::move(run_.classes);
  run_ = std::move(now);
  if (const std::int64_t batches = sampler_->batches_per_epoch(); run_.batch > batches) {
    // Changed data have fewer; the epoch's loss is a mean over them.
    run_.loss_sum *= static_cast<double>(batches) / static_cast<double>(run_.batch);
    run_.batch = batches;
  }
  if (!same_data) run_.bad_images.clear();
  trainer_->go_on_in_schedule(run_.epoch * sampler_->batches_per_epoch() + run_.batch);
  source_sha256_ = checkpoint.model().source_sha256;
  resumed_from_last_ = fs::path(checkpoint.path()).filename() == kLastFile;
  saver_.go_on_from(run_.step);
  record_.resume(run_.history);
  plan_.checkpoint.reset();  // frees memory of the size of network and optimizer state
}

void TrainRun::describe() const {
  const TrainParts parts{.settings = settings_,
                         .trainer = *trainer_,
                         .sampler = *sampler_,
                         .data = train_data_,
                         .held_out = evaluation_.held_out(),
                         .train_sample = evaluation_.train_sample(),
                         .evaluation_bytes = evaluation_.reserved_bytes(),
                         .loading = loading_,
                         .processes = processes_.size()};
  for (const std::string& line : describe_training(parts)) tell_user(line);
}

void TrainRun::prepare_folder() {
  prepared_ = true;
  if (processes_.first()) saver_.take_folder(settings_.log == "csv");
}

void TrainRun::record_origin() const {
  write_origin(settings_.out, {.common = common_,
                               .environment = run_.environment,
                               .processes = processes_.size(),
                               .train = train_data_,
                               .held_out = evaluation_.held_out(),
                               .epoch = run_.epoch,
                               .step = run_.step,
                               .resumed = saver_.saved_step() >= 0,
                               .weights = settings_.weights,
                               .weights_sha256 = source_sha256_});
}

void TrainRun::execute() {
  describe();
  require_equal_starts(processes_, run_);
  require_equal_parameters(processes_, trainer_->parameters(), run_);
  if (run_.epoch >= settings_.epochs || out_of_patience()) {
    // A run that was killed between its last writes may have written only best.h5.
    prepare_folder();
    if (processes_.first()) {
      if (!resumed_from_last_) saver_.save_last(state(), run_.step);
      record_.write();
    }
    say(fmt::format("{}: {}", settings_.out, why_over()));
    if (!common_.json.empty()) write_json(common_.json, result());
    return;
  }
  if (checkpoint_bytes() > kMostSealedBytes) {
    fail<UsageError>(
        "--out {}: a checkpoint of this run takes {:.1f} GiB, and none of more than {} is read "
        "again; use a smaller --dim, a smaller --memory or fewer classes",
        settings_.out, static_cast<double>(checkpoint_bytes()) / (1 << 30), kMostSealedBytes >> 30);
  }
  if (processes_.first()) {
    constexpr std::int64_t kAny = std::numeric_limits<std::int32_t>::max();
    const std::int64_t saves = settings_.save_every > 0 ? kAny : settings_.epochs - run_.epoch;
    saver_.require_room(checkpoint_bytes(), saves);
  }
  if (run_.step == 0 && processes_.first()) {
    check_images(context_, train_data_, settings_.max_bad, settings_.out, common_.quiet);
  }
  const std::int64_t batches = sampler_->batches_per_epoch();
  LoaderOptions loading = loader_options(settings_, common_.seed);
  const bool between = run_.batch >= batches;  // the run was stopped during evaluation
  loading.first_epoch = run_.epoch + (between ? 1 : 0);
  loading.first_batch = between ? 0 : run_.batch;
  loading.known_bad = known_bad();
  loader_ = std::make_unique<Loader>(train_data_, *share_, augment_options(settings_), loading);
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
  print_summary();
  if (!common_.json.empty()) write_json(common_.json, result());
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

std::vector<BadImage> TrainRun::known_bad() const {
  std::vector<BadImage> bad;
  for (const std::int64_t index : run_.bad_images) {
    if (index < 0 || index >= train_data_.size()) continue;
    try {
      train_data_.load(index);
    } catch (const SystemError&) {
      throw;  // the picture may be readable
    } catch (const InputError& error) {
      bad.push_back({index, train_data_.item_name(index), error.what()});
    }
  }
  return bad;
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
    Progress progress(fmt::format("epoch {}/{}", run_.epoch + 1, settings_.epochs),
                      (batches - first) * settings_.batch, "images", common_.quiet);
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
  if (settings_.epochs - run_.epoch < 2) return text;  // the progress bar shows it
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
    if (best) saver_.save_best(bytes);
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

std::uint64_t TrainRun::checkpoint_bytes() const {
  constexpr std::uint64_t kBeside = std::uint64_t{1} << 20;  // statistics, record, settings
  return trainer_->state_bytes() + kBeside;
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

void TrainRun::record(ordered_json entry, const ordered_json& timing) {
  run_.history.push_back(record_.add(std::move(entry), timing));
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
  const std::int64_t saved = saver_.saved_step();
  const std::string before =
      saved > 0
          ? fmt::format("the last save is that of step {}, from which --resume auto goes on", saved)
          : "nothing was saved before";
  if (stepping_) {
    // Statistics, memory and some parameters may already be from the failed step; only the last
    // save has a consistent state.
    tell_user(fmt::format("step {} failed half done and is not saved; {}", run_.step + 1, before));
    return;
  }
  if (run_.step == saved) return;
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

void TrainRun::print_summary() const {
  if (run_.epoch < settings_.epochs) say(why_over());
  if (holds_out()) {
    for (const std::string& line : record_.comparison(run_.best, best_epoch_)) say(line);
  }
  std::error_code ignored;
  say(fmt::format("{}: {}last.h5{}, metrics.jsonl{}, settings.toml, run.json", settings_.out,
                  best_epoch_ == 0 ? "" : "best.h5, ",
                  fs::exists(fs::path(settings_.out) / kPreviousFile, ignored)
                      ? " (previous.h5: the one before)"
                      : "",
                  settings_.log == "csv" ? ", metrics.csv" : ""));
}

ordered_json TrainRun::result() const {
  return {{"out", settings_.out},
          {"epochs", run_.epoch},
          {"steps", run_.step},
          {"before", record_.first()},
          {"after", record_.last()},
          {"best", {{settings_.monitor, compared_ ? ordered_json(run_.best) : ordered_json()}}},
          {"settings", table_.values()},
          {"device", common_.device},
          {"threads", context_.threads()},
          {"version", RK_VERSION}};
}

void TrainRun::say(const std::string& line) const {
  if (!common_.quiet) print("{}\n", one_line(line));
}

void TrainRun::tell_user(const std::string& line) const {
  if (!common_.quiet) tell("{}", line);
}

}  // namespace rk
