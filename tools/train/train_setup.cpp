#include "tools/train/train_setup.h"

#include "data/sources/open_dataset.h"
#include "engine/base/english.h"
#include "engine/base/note.h"
#include "engine/system/signals.h"
#include "layers/graphs/graph_runner.h"
#include "tools/cli/progress.h"
#include "tools/train/settings/train_options.h"
#include "tools/train/train_description.h"
#include "training/equal_processes.h"
#include "weights/sealed_file.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <span>

namespace rk {
namespace {

// Reduces a batch size that the user did not choose if it needs more classes than there are, or if
// the processes cannot share it.
void fit_batch(TrainSettings& settings, const Dataset& data, const ProcessGroup& processes) {
  if (settings.sampler != "pk") return;
  const auto classes = static_cast<std::int64_t>(data.classes().size());
  const std::int64_t step = batch_step(settings, processes.size());
  const std::int64_t most = std::min(settings.batch, classes * settings.per_class) / step * step;
  if (classes < 2 || most < step || settings.batch == most) return;
  if (processes.first()) {
    const std::int64_t per_class = settings.per_class, batch = settings.batch;
    std::string why = fmt::format("{} would take {}", batch, batch / per_class);
    if (batch <= classes * per_class) {
      why = processes.alone()
                ? fmt::format("{} is no multiple of {}", batch, per_class)
                : fmt::format("{} cannot be shared so by {} processes", batch, processes.size());
    }
    note(fmt::format("--batch {}: {} images of each of {} of {}, as {}; --batch chooses otherwise",
                     most, per_class, counted(most / per_class, "class"), data.name(), why));
  }
  settings.batch = most;
}

// In all processes; before the first calls that all must make alike. run: has the data.
void require_same_start(ProcessGroup& processes, const RunState& run, const RunStart& from,
                        const SettingTable& table) {
  ProcessStart start;
  start.data = run.data;
  start.held_out = run.held_out;
  const RunState place = from.checkpoint ? from.checkpoint->run() : RunState{};
  start.place = fmt::format("{} {} {}", place.epoch, place.batch, place.step);
  if (from.weights) start.weights = from.weights->sha256();
  // May differ between machines: where files lie, and what only changes how fast the same is
  // computed, but for the last bits that plans change.
  const std::set<std::string> own = {"data",    "test-data", "weights", "plans",
                                     "threads", "workers",   "cache"};
  const nlohmann::ordered_json values = table.values();
  for (const auto& [name, value] : values.items()) {
    if (!own.contains(name)) start.settings.emplace_back(name, value.dump());
  }
  require_equal_starts(processes, start);
}

// What the last bits of a run also depend on.
std::string environment_of(const Context& context, const ProcessGroup& processes) {
  std::string environment = fmt::format("Rankine {}, {}", RK_VERSION, context.describe());
  if (context.on_gpu()) {
    environment += fmt::format(", {}", plan_environment(context));
    if (!plans_of(context).empty()) {
      const std::string plans = plans_of(context).text();
      environment +=
          fmt::format(", plans {:.12}", hexadecimal(sha256(std::as_bytes(std::span(plans)))));
    }
  }
  if (!processes.alone()) environment += fmt::format(", {} processes", processes.size());
  return environment;
}

// A table of other batches or pictures names none of this run's graphs.
void note_plans_without_effect(const Context& context, const TrainSettings& settings) {
  if (!context.on_gpu() || plans_of(context).empty()) return;
  const PlansTaken plans = plans_taken(context);
  if (plans.named > 0 && plans.taken == plans.named) return;
  const std::string what = plans.named == 0
                               ? std::string("names an engine for none of this run's graphs")
                               : fmt::format("names engines for {}, and cuDNN offers {} of them",
                                             counted(plans.named, "graph"), plans.taken);
  note(
      fmt::format("--plans {}: {}; tune with bench step of this network, --batch {} and the same "
                  "--image-size, --precision and --bn",
                  settings.plans, what, settings.chunk > 0 ? settings.chunk : settings.batch));
}

}  // namespace

TrainSetup::TrainSetup(const Context& context, const CommonOptions& common, TrainSettings& settings,
                       const SettingTable& table, const RunStart& start)
    : data(open_dataset(settings.data, Split::kTrain)),
      evaluation(context, common, settings, data) {
  ProcessGroup& processes = *common.processes;
  if (start.open_batch) fit_batch(settings, data, processes);
  const Dataset* held_out = evaluation.held_out();
  new_run.data = data.identity();
  new_run.held_out = held_out != nullptr ? held_out->identity() : "nothing";
  if (held_out != nullptr) new_run.held_out_classes = held_out->class_names();
  require_same_start(processes, new_run, start, table);
  const auto classes = static_cast<std::int64_t>(data.classes().size());
  sampler = make_sampler(sampler_spec(settings), data, settings.batch, common.seed,
                         settings.batches, processes.size());
  const bool in_epoch = start.checkpoint != nullptr && start.checkpoint->run().batch > 0;
  check_shares(settings, processes.size(), classes, in_epoch);
  share = make_batch_share(*sampler, processes.rank(), processes.size());
  TrainerOptions options =
      trainer_options(settings, common.seed, sampler->batches_per_epoch(), classes);
  options.processes = &processes;
  std::optional<Progress> progress;
  options.preparing = [&](std::int64_t done, std::int64_t all) {
    if (processes.alone()) stop_if_interrupted();
    if (!progress) progress.emplace("preparing the GPU", all, "graphs", common.quiet);
    progress->update(done);
  };
  loading = loading_bytes(settings, data, held_out, processes.size());
  trainer =
      trainer_within_memory({context, settings, held_out, loading, start.open_chunk}, options);
  progress.reset();
  note_plans_without_effect(context, settings);
  evaluation.plan(trainer->parameters());
  new_run.seed = common.seed;
  new_run.environment = environment_of(context, processes);
  new_run.settings = table.values().dump();
  new_run.classes = data.class_names();
}

std::vector<std::string> TrainSetup::description(const TrainSettings& settings,
                                                 const std::vector<std::string>& class_names,
                                                 int processes) const {
  return describe_training({.settings = settings,
                            .trainer = *trainer,
                            .sampler = *sampler,
                            .data = data,
                            .class_names = class_names,
                            .held_out = evaluation.held_out(),
                            .train_sample = evaluation.train_sample(),
                            .evaluation_bytes = evaluation.reserved_bytes(),
                            .loading = loading,
                            .processes = processes});
}

}  // namespace rk
