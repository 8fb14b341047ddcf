#include "tools/train/train_run.h"

#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/note.h"
#include "engine/system/read_file.h"
#include "engine/system/signals.h"
#include "layers/graphs/graph_run.h"
#include "retrieval/evaluate.h"
#include "tools/cli/json_file.h"
#include "tools/cli/messages.h"
#include "tools/cli/parse_json.h"
#include "tools/cli/progress.h"
#include "tools/common/image_check.h"
#include "tools/common/metrics_report.h"
#include "tools/common/similarity_counts.h"
#include "tools/train/divergence.h"
#include "tools/train/going_on.h"
#include "tools/train/held_out.h"
#include "tools/train/monitor.h"
#include "tools/train/run_origin.h"
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
#include <iterator>
#include <new>
#include <numeric>
#include <set>
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

TrainRun::TrainRun(const Context& context, const CommonOptions& common,
                   const TrainSettings& settings, TrainPlan plan)
    : context_(context),
      common_(common),
      processes_(*common.processes),
      settings_(settings),
      plan_(std::move(plan)),
      train_data_(open_dataset(settings.data, Split::kTrain)),
      test_data_(open_held_out(settings)),
      record_(settings.out, {.epochs = settings.epochs,
                             .monitor = settings.monitor,
                             .csv = settings.log == "csv",
                             .quiet = common.quiet}),
      unreadable_(settings.out),
      bad_(processes_, train_data_) {
  if (test_data_ && settings.eval_train > 0) {
    train_sample_ = training_sample(train_data_, std::min(settings.eval_train, test_data_->size()),
                                    common.seed);
  }
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
  std::function<void(std::int64_t)> choose_chunk;
  if (plan_.choose_chunk) {
    choose_chunk = [&](std::int64_t chunk) { plan_.choose_chunk(plan_, chunk); };
  }
  loading_ = loading_bytes(settings, train_data_, held_out(), processes_.size());
  trainer_ = fit_trainer({context, settings, held_out(), loading_, choose_chunk}, options);
  progress.reset();
  embedder_ =
      std::make_unique<Embedder>(context, trainer_->parameters(), model_description(settings),
                                 evaluation_batch(settings, held_out()), options.precision);
  plan_evaluation(*embedder_, settings);
  run_.seed = common.seed;
  run_.data = train_data_.identity();
  run_.held_out = test_data_ ? test_data_->identity() : "nothing";
  run_.environment = fmt::format("Rankine {}, {}", RK_VERSION, context.describe());
  if (context.on_gpu()) run_.environment += fmt::format(", {}", plan_environment(context));
  if (!processes_.alone()) {
    run_.environment += fmt::format(", {} processes", processes_.size());
  }
  run_.settings = plan_.settings.dump();
  run_.classes = train_data_.class_names();
  if (plan_.checkpoint) {
    start_from_checkpoint();
  } else if (plan_.weights) {
    start_from_weights();
  }
}

// Reduces a batch size that the user did not choose if it needs more classes than there are.
void TrainRun::fit_batch() {
  if (!plan_.choose_batch || settings_.sampler != "pk") return;
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
  plan_.choose_batch(plan_, most);
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
  compared_ = compare_again(now, checkpoint, settings_, test_data_.has_value(), say);
  best_epoch_ = processes_.first()
                    ? epoch_of_best(now, checkpoint, settings_, test_data_.has_value(), say)
                    : now.epoch;
  now.settings = std::move(run_.settings);
  now.environment = std::move(run_.environment);
  now.data = std::move(run_.data);
  now.held_out = std::move(run_.held_out);
  add_classes(now.classes, run_.classes);
  now.classes = std::move(run_.classes);
  run_ = std::move(now);
  run_.batch = std::min(run_.batch, sampler_->batches_per_epoch());  // changed data may have fewer
  if (!same_data) run_.bad_images.clear();
  trainer_->go_on_in_schedule(run_.epoch * sampler_->batches_per_epoch() + run_.batch);
  source_sha256_ = checkpoint.model().source_sha256;
  resumed_from_last_ = fs::path(checkpoint.path()).filename() == kLastFile;
  saved_step_ = run_.step;
  record_.resume(run_.history);
  plan_.checkpoint.reset();  // frees memory of the size of network and optimizer state
}

void TrainRun::describe() const {
  const TrainParts parts{settings_,         *trainer_,  *sampler_,
                         train_data_,       held_out(), train_sample_ ? &*train_sample_ : nullptr,
                         embedder_->plan(), loading_,   processes_.size()};
  for (const std::string& line : describe_training(parts)) tell_user(line);
}

void TrainRun::prepare_folder() {
  prepared_ = true;
  if (!processes_.first()) return;
  plan_.lock->keep();
  std::vector<std::string> ours(kRunCheckpoints.begin(), kRunCheckpoints.end());
  ours.insert(ours.end(), kRunTexts.begin(), kRunTexts.end());
  remove_stale_temporaries(settings_.out, ours);
  if (settings_.log != "csv") {
    // Left by an earlier start; it would no longer be updated.
    std::error_code ignored;
    fs::remove(fs::path(settings_.out) / "metrics.csv", ignored);
  }
  write_atomic(fs::path(settings_.out) / "settings.toml", plan_.settings_toml);
}

void TrainRun::record_origin() const {
  write_origin(settings_.out, {.common = common_,
                               .environment = run_.environment,
                               .processes = processes_.size(),
                               .train = train_data_,
                               .held_out = held_out(),
                               .epoch = run_.epoch,
                               .step = run_.step,
                               .resumed = saved_step_ >= 0,
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
      if (!resumed_from_last_) save_as_last(state());
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
  if (processes_.first()) require_room(settings_.out, folder_bytes(), files_);
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
    const auto start = Clock::now();
    ordered_json entry = {{"epoch", 0}, {"step", 0}};
    entry.update(evaluate_epoch());
    eval_seconds_ = seconds_since(start);
    record(std::move(entry), {{"eval_seconds", eval_seconds_}});
  }
  rehearse_saving();  // when all threads and buffers exist
  prepare_folder();
  if (processes_.first()) {
    record_origin();
    record_.write();
  }
  saved_at_ = Clock::now();
  try {
    while (run_.epoch < settings_.epochs && !out_of_patience()) train_epoch();
  } catch (const DivergedError& error) {
    // Loss and gradient are equal bit for bit in all processes, so all of them arrive here.
    const std::string dump =
        processes_.first() && !trainer_->last_batch().indices.empty() && !plan_.lock->replaced()
            ? dump_divergence(settings_.out, error.what(), *trainer_, train_data_,
                              trainer_->steps() + (stepping_ ? 1 : 0))
            : "";
    processes_.end_together();
    if (!processes_.first()) throw DivergedError("");
    const std::string last = (fs::path(settings_.out) / kLastFile).string();
    std::error_code ignored;
    fail<DivergedError>("{}{}{}", error.what(), dump,
                        fs::exists(last, ignored) ? "; the last good checkpoint is " + last : "");
  } catch (const Interrupted&) {
    throw;  // after saving
  } catch (...) {
    // All bad pictures known so far, including those that other processes have reported.
    if (processes_.first()) unreadable_.update(bad_.with(loader_->bad_images()));
    save_before_leaving();
    throw;
  }
  print_summary();
  if (!common_.json.empty()) write_json(common_.json, result());
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
      const std::int64_t next = run_.batch + trainer_->under_way();
      if (next < batches) {
        advance(next, batches);
      } else {
        finish_steps();
      }
      if (run_.batch > first) {
        progress.update((run_.batch - first) * settings_.batch,
                        progress_note(seconds_since(start), run_.batch - first));
      }
      if (asked_to_stop()) {
        finish_steps();
        progress.finish();
        stop();
      }
      if (run_.batch < batches) save_if_due();
    }
  }
  share_bad_images();
  finish_epoch(seconds_since(start), batches - first);
}

void TrainRun::share_bad_images() {
  const std::vector<BadImage>& all = bad_.gather(loader_->bad_images());
  if (!processes_.first()) return leave_if_failed();
  for (const std::string& line : unreadable_.update(all)) tell_user(line);
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
  stepping_ = trainer_->under_way() > 0;
  // Overlaps with the GPU's computation.
  if (!trainer_->stages() || next + 1 == batches) return;
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
         static_cast<double>(epochs) * (eval_seconds_ + save_seconds_);
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
  trainer_->download();
  require_equal_parameters(processes_, trainer_->parameters(), run_);
  require_sound();
  const auto batches = static_cast<double>(sampler_->batches_per_epoch());
  const auto start = Clock::now();
  ordered_json entry = {
      {"epoch", run_.epoch + 1}, {"step", run_.step}, {"loss", run_.loss_sum / batches}};
  entry.update(evaluate_epoch());
  ordered_json timing = ordered_json::object();
  if (steps > 0) {
    timing["seconds"] = seconds;
    timing["images_per_second"] = static_cast<double>(steps * settings_.batch) / seconds;
    if (steps < sampler_->batches_per_epoch()) timing["timed_batches"] = steps;
  }
  eval_seconds_ = seconds_since(start);
  timing["eval_seconds"] = eval_seconds_;
  timing["waited_for_images"] = loader_->waited_seconds() - waited_before_;
  waited_before_ = loader_->waited_seconds();
  const std::optional<double> value = metric_of(entry, settings_.monitor);
  const RunState trained = run_;
  const std::int64_t before = best_epoch_;
  // The newest epoch is the best if nothing is held out, or if no epoch has had a value yet.
  const bool best = value ? take_value(run_, *value, !compared_) : !test_data_ || !compared_;
  compared_ = compared_ || value.has_value();
  ++run_.epoch;
  run_.batch = 0;
  run_.loss_sum = 0;
  if (best) best_epoch_ = run_.epoch;
  record(std::move(entry), timing);
  if (!processes_.first()) return;
  const std::vector<std::byte> bytes = state();
  // best.h5 first: a run killed before last.h5 is written repeats this epoch with the same result.
  try {
    plan_.lock->require_own_folder();
    if (best) save_best(settings_.out, bytes, files_);
  } catch (...) {
    run_ = trained;  // saved on leaving; a resume evaluates it again and finds it best
    best_epoch_ = before;
    throw;
  }
  save_as_last(bytes);
  plan_.lock->require_own_folder();
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
  const bool over = processes_.first() && test_data_ && settings_.patience > 0 &&
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

ordered_json TrainRun::evaluate_epoch() {
  ordered_json entry = ordered_json::object();
  if (!test_data_) return entry;
  const ordered_json held_out = evaluate_images(*test_data_, "held-out");
  const auto skipped = static_cast<std::int64_t>(embedder_->bad_images().size());
  if (skipped != skipped_held_out_) {
    skipped_held_out_ = skipped;
    tell_user(fmt::format("held out: the metrics leave out {} that cannot be read, {}",
                          counted(skipped, "image"), embedder_->bad_images().front().reason));
  }
  if (run_.step == 0) note_rotated(*test_data_);
  if (number_or(held_out, "num_queries_valid", 1) == 0) {
    note_first("nothing to find",
               "held out: no picture has another of its class, so that there is nothing to find: "
               "its metrics are undefined, and the newest epoch is taken for the best; said once");
  }
  if (train_sample_) entry["train"] = evaluate_images(*train_sample_, "training");
  entry.update(held_out);
  return entry;
}

ordered_json TrainRun::evaluate_images(const Dataset& data, const char* what) {
  std::optional<Metrics> metrics;
  bool finite = true;
  if (processes_.first()) {
    if (prepared_) announce("stopping the evaluation, which is repeated later", 0);
    Progress progress(fmt::format("evaluating {}", what), data.size(), "images", common_.quiet);
    EmbedOptions options = embed_options(settings_);
    options.progress = [&](std::int64_t done) { progress.update(done); };
    const std::optional<EmbeddingSet> set = embedder_->embed(data, options);
    finite = !set || std::all_of(set->embeddings.begin(), set->embeddings.end(),
                                 [](float x) { return std::isfinite(x); });
    if (set && finite) {
      EvaluateOptions how;
      how.interrupted = interrupted;
      metrics = evaluate(context_, set->view(), nullptr, how);
    }
  }
  if (processes_.all_reduce_max(finite ? 0 : 1) != 0) fail_evaluation(what);
  if (asked_to_stop()) stop();
  if (!metrics) return ordered_json::object();
  ordered_json values = metrics_json(*metrics);
  values["similarities"] = similarity_counts_json(*metrics);
  return values;
}

void TrainRun::fail_evaluation(const char* what) const {
  if (run_.step == 0) {
    fail<InputError>(
        "{}: the network makes NaN or infinity of {} images before it has learnt anything; "
        "start from other weights",
        settings_.weights.empty() ? settings_.data : settings_.weights, what);
  }
  fail<DivergedError>(
      "training diverged: after step {} the network makes NaN or infinity of {} images; "
      "lower --lr or lengthen --warmup",
      run_.step, what);
}

std::uint64_t TrainRun::checkpoint_bytes() const {
  constexpr std::uint64_t kBeside = std::uint64_t{1} << 20;  // statistics, record, settings
  return trainer_->state_bytes() + kBeside;
}

// Bytes that the folder needs beyond its present files: last.h5, previous.h5, best.h5 and the one
// being written; fewer if the run ends before it has written that many.
std::uint64_t TrainRun::folder_bytes() const {
  std::int64_t there = 0;
  for (const char* name : {kLastFile, kPreviousFile, kBestFile}) {
    std::error_code ignored;
    there += fs::exists(fs::path(settings_.out) / name, ignored) ? 1 : 0;
  }
  std::int64_t more = 4 - there;
  if (settings_.save_every == 0) {
    more = std::min(more, settings_.epochs - run_.epoch + (there < 2 ? 1 : 0));
  }
  return static_cast<std::uint64_t>(more) * checkpoint_bytes();
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

bool TrainRun::asked_to_stop() {
  const int signal = processes_.all_reduce_max(pending_signal());
  if (signal != 0) take_signal(signal);
  return signal != 0;
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

void TrainRun::save_as_last(std::span<const std::byte> bytes) {
  const auto start = Clock::now();
  plan_.lock->require_own_folder();
  save_last(settings_.out, bytes, files_,
            plan_.last_damaged ? Rotate::kDropDamaged : Rotate::kKeepLast);
  plan_.last_damaged = false;
  saved_step_ = run_.step;
  saved_at_ = Clock::now();
  save_seconds_ = seconds_since(start);
}

void TrainRun::save_if_due() {
  if (settings_.save_every == 0) return;
  const bool due = processes_.first() && seconds_since(saved_at_) >= 60 * settings_.save_every;
  if (processes_.all_reduce_max(due ? 1 : 0) == 0) return;
  finish_steps();
  trainer_->download();
  require_sound();  // in all processes: if one diverges, all do
  share_bad_images();
  if (!processes_.first()) return;
  try {
    save_as_last(checkpoint());
  } catch (const InputError& error) {
    // The next save may succeed, as may the one at the end of the epoch.
    saved_at_ = Clock::now();
    tell_user(fmt::format("not saved after step {}: {}", run_.step, error.what()));
  }
}

void TrainRun::save_before_leaving() {
  if (!processes_.first() || run_.step == 0) return;
  const std::string before =
      saved_step_ > 0
          ? fmt::format("the last save is that of step {}, from which --resume auto goes on",
                        saved_step_)
          : "nothing was saved before";
  if (stepping_) {
    // Statistics, memory and some parameters may already be from the failed step; only the last
    // save has a consistent state.
    tell_user(fmt::format("step {} failed half done and is not saved; {}", run_.step + 1, before));
    return;
  }
  if (run_.step == saved_step_) return;
  try {
    save_as_last(state());
    tell_user(fmt::format("saved after step {}; once what follows is mended, go on with: {}",
                          run_.step, resume_command()));
  } catch (const std::exception& error) {
    saved_step_ = run_.step;  // do not try again
    tell_user(fmt::format("not saved after step {}: {}; {}", run_.step, error.what(), before));
  }
}

void TrainRun::leave_if_failed() {
  if (processes_.all_reduce_max(failure_ ? 1 : 0) == 0) return;
  finish_steps();
  bad_.gather(loader_->bad_images());
  save_before_leaving();
  processes_.end_together();
  if (failure_) std::rethrow_exception(failure_);
  throw InputError("");  // another process reports the error
}

void TrainRun::announce(const std::string& what, double seconds) const {
  if (common_.quiet) return;
  const std::int64_t lost = run_.step - std::max<std::int64_t>(saved_step_, 0) +
                            (stepping_ ? 1 : 0) + trainer_->under_way();
  const std::string batches = counted(lost, "batch");
  const std::string how_long =
      seconds + save_seconds_ > 0.5 ? fmt::format(" (about {:.0f} s)", seconds + save_seconds_)
      : stepping_ && seconds == 0   ? " (the first step: how long is not known)"
                                    : "";
  set_stop_words(
      {fmt::format(
           "{}, then saving to {}{}; Ctrl-C again within 5 seconds: at once, which loses {}", what,
           settings_.out, how_long, batches),
       fmt::format("stopped at once, which loses {} since the last save; {}", batches,
                   saved_step_ < 0
                       ? std::string("nothing was saved before")
                       : fmt::format("go on from step {} with --resume auto", saved_step_))});
}

void TrainRun::stop() {
  if (prepared_) bad_.gather(loader_->bad_images());
  if (processes_.first() && prepared_) save_as_last(state());
  processes_.end_together();
  if (!processes_.first()) throw Interrupted("");
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
  if (test_data_) {
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
          {"settings", plan_.settings},
          {"device", common_.device},
          {"threads", context_.threads()},
          {"version", RK_VERSION}};
}

void TrainRun::say(const std::string& line) const {
  if (!common_.quiet) print("{}\n", line);
}

void TrainRun::tell_user(const std::string& line) const {
  if (!common_.quiet) tell("{}", line);
}

}  // namespace rk
