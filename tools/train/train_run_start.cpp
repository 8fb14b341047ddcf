// What a run begins from: data, network, weights or a checkpoint, and the folder.
#include "tools/train/train_run.h"

#include "engine/base/english.h"
#include "engine/base/error.h"
#include "engine/base/note.h"
#include "engine/system/read_file.h"
#include "layers/graphs/graph_runner.h"
#include "tools/cli/progress.h"
#include "tools/train/monitor.h"
#include "tools/train/resume.h"
#include "tools/train/run_origin.h"
#include "tools/train/train_description.h"
#include "training/equal_processes.h"
#include "training/model_io.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace rk {
namespace {

namespace fs = std::filesystem;

}  // namespace

TrainRun::TrainRun(const Context& context, const CommonOptions& common, TrainSettings& settings,
                   const SettingTable& table, RunStart start)
    : context_(context),
      common_(common),
      processes_(*common.processes),
      settings_(settings),
      table_(table),
      start_(std::move(start)),
      train_data_(open_dataset(settings.data, Split::kTrain)),
      evaluation_(context, common, settings, train_data_),
      saver_(settings.out, std::move(start_.lock), start_.last_damaged),
      record_(settings.out, {.epochs = settings.epochs,
                             .monitor = settings.monitor,
                             .csv = settings.log == "csv",
                             .quiet = common.quiet}),
      unreadable_(settings.out),
      bad_(processes_, train_data_) {
  fit_batch();
  const Dataset* held_out = evaluation_.held_out();
  run_.data = train_data_.identity();
  run_.held_out = held_out != nullptr ? held_out->identity() : "nothing";
  require_same_start();  // before the first calls that all must make alike
  sampler_ = make_sampler(sampler_spec(settings), train_data_, settings.batch, common.seed,
                          settings.batches, processes_.size());
  check_shares(settings, processes_.size(),
               static_cast<std::int64_t>(train_data_.classes().size()));
  share_ = make_batch_share(*sampler_, processes_.rank(), processes_.size());
  TrainerOptions options = trainer_options(settings, common.seed, sampler_->batches_per_epoch(),
                                           static_cast<std::int64_t>(train_data_.classes().size()));
  options.processes = &processes_;
  std::optional<Progress> progress;
  options.preparing = [&](std::int64_t done, std::int64_t all) {
    if (!progress) progress.emplace("preparing the GPU", all, "graphs", common.quiet);
    progress->update(done);
  };
  loading_ = loading_bytes(settings, train_data_, held_out, processes_.size());
  trainer_ =
      trainer_within_memory({context, settings, held_out, loading_, start_.open_chunk}, options);
  progress.reset();
  evaluation_.plan(trainer_->parameters(), options.precision);
  run_.seed = common.seed;
  run_.environment = fmt::format("Rankine {}, {}", RK_VERSION, context.describe());
  if (context.on_gpu()) run_.environment += fmt::format(", {}", plan_environment(context));
  if (!processes_.alone()) {
    run_.environment += fmt::format(", {} processes", processes_.size());
  }
  run_.settings = table_.values().dump();
  run_.classes = train_data_.class_names();
  if (start_.checkpoint) {
    start_from_checkpoint();
  } else if (start_.weights) {
    start_from_weights();
  }
}

// Reduces a batch size that the user did not choose if it needs more classes than there are, or if
// the processes cannot share it.
void TrainRun::fit_batch() {
  if (!start_.open_batch || settings_.sampler != "pk") return;
  const auto classes = static_cast<std::int64_t>(train_data_.classes().size());
  const std::int64_t step = batch_step(settings_, processes_.size());
  const std::int64_t most = std::min(settings_.batch, classes * settings_.per_class) / step * step;
  if (classes < 2 || most < step || settings_.batch == most) return;
  if (processes_.first()) {
    const std::int64_t per_class = settings_.per_class, batch = settings_.batch;
    std::string why = fmt::format("{} would take {}", batch, batch / per_class);
    if (batch <= classes * per_class) {
      why = processes_.alone()
                ? fmt::format("{} is no multiple of {}", batch, per_class)
                : fmt::format("{} cannot be shared so by {} processes", batch, processes_.size());
    }
    note(fmt::format("--batch {}: {} images of each of {} of {}, as {}; --batch chooses otherwise",
                     most, per_class, counted(most / per_class, "class"), train_data_.name(), why));
  }
  settings_.batch = most;
}

void TrainRun::require_same_start() const {
  ProcessStart start;
  start.data = run_.data;
  start.held_out = run_.held_out;
  const RunState place = start_.checkpoint ? start_.checkpoint->run() : RunState{};
  start.place = fmt::format("{} {} {}", place.epoch, place.batch, place.step);
  // May differ between machines: where files lie, whose contents are compared, and what only
  // changes how fast the same is computed.
  const std::set<std::string> own = {"data",    "test-data", "weights", "plans",
                                     "threads", "workers",   "cache"};
  const nlohmann::ordered_json values = table_.values();
  for (const auto& [name, value] : values.items()) {
    if (!own.contains(name)) start.settings.emplace_back(name, value.dump());
  }
  require_equal_starts(processes_, start);
}

void TrainRun::start_from_weights() {
  const bool whole = load_starting_point(*start_.weights, trainer_->parameters());
  trainer_->upload();
  source_sha256_ = start_.weights->sha256();
  add_classes(start_.weights->run().classes, run_.classes);
  std::string left;
  if (!whole && start_.weights->weight_dims("embedding.weight")) {
    left = " (but not its embedding layer, which has another size)";
  } else if (start_.weights->weight_dims("fc.weight")) {
    left = " (its classifier is left out)";
  }
  tell_user(fmt::format("weights: {}{}", settings_.weights, left));
  start_.weights.reset();
}

void TrainRun::start_from_checkpoint() {
  const Checkpoint& checkpoint = *start_.checkpoint;
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
  now.settings = std::move(run_.settings);
  now.environment = std::move(run_.environment);
  now.data = std::move(run_.data);
  now.held_out = std::move(run_.held_out);
  add_classes(now.classes, run_.classes);
  now.classes = std::move(run_.classes);
  run_ = std::move(now);
  best_epoch_ = processes_.first() ? epoch_of_best(run_, checkpoint, settings_, holds_out(), say)
                                   : run_.epoch;
  if (const std::int64_t batches = sampler_->batches_per_epoch(); run_.batch > batches) {
    // Changed data have fewer; the epoch's loss is a mean over them.
    run_.loss_sum *= static_cast<double>(batches) / static_cast<double>(run_.batch);
    run_.batch = batches;
  }
  if (!same_data) run_.bad_images.clear();
  trainer_->go_on_in_schedule(run_.epoch * sampler_->batches_per_epoch() + run_.batch);
  source_sha256_ = checkpoint.model().source_sha256;
  own_table_ = stored_text(checkpoint, "log") == "csv";
  resumed_from_last_ = fs::path(checkpoint.path()).filename() == kLastFile;
  saver_.go_on_from(run_.step);
  record_.resume(run_.history);
  start_.checkpoint.reset();  // frees memory of the size of network and optimizer state
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
  if (processes_.first()) saver_.take_folder(own_table_ && settings_.log != "csv");
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

}  // namespace rk
