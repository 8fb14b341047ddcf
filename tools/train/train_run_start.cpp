// What a run begins from: initial weights or a checkpoint.
#include "tools/train/train_run.h"

#include "tools/train/run/resume.h"
#include "training/model_io.h"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace rk {

TrainRun::TrainRun(const Context& context, const CommonOptions& common, TrainSettings& settings,
                   const SettingTable& table, RunStart start)
    : context_(context),
      common_(common),
      processes_(*common.processes),
      settings_(settings),
      table_(table),
      start_(std::move(start)),
      setup_(context, common, settings, table, start_),
      run_(setup_.new_run),
      maker_(processes_, settings, *setup_.trainer),
      saver_(settings.out, std::move(start_.lock), start_.last_damaged),
      record_(settings.out, {.epochs = settings.epochs,
                             .monitor = settings.monitor,
                             .csv = settings.log == "csv",
                             .quiet = common.quiet}),
      bad_(processes_, setup_.data, settings.out),
      best_(settings, holds_out()) {
  if (start_.checkpoint) {
    resume();
  } else if (start_.weights) {
    start_from_weights();
  }
}

void TrainRun::start_from_weights() {
  const bool whole = load_starting_point(*start_.weights, setup_.trainer->parameters());
  setup_.trainer->upload();
  maker_.set_source(start_.weights->sha256());
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

void TrainRun::resume() {
  const Checkpoint& checkpoint = *start_.checkpoint;
  Trainer& trainer = *setup_.trainer;
  const std::int64_t batches = setup_.sampler->batches_per_epoch();
  const SayLine say = [this](const std::string& line) { tell_user(line); };
  require_countable(checkpoint, settings_, batches);
  accept_data(checkpoint, run_, settings_, say);
  const bool same_data = checkpoint.run().data == run_.data;
  if (!trainer.load(checkpoint, same_data)) {
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
  now.settings = std::move(run_.settings);
  now.environment = std::move(run_.environment);
  now.data = std::move(run_.data);
  now.held_out = std::move(run_.held_out);
  add_classes(now.classes, run_.classes);
  now.classes = std::move(run_.classes);
  add_classes(now.held_out_classes, run_.held_out_classes);
  now.held_out_classes = std::move(run_.held_out_classes);
  run_ = std::move(now);
  best_.resume(run_, checkpoint, processes_.first(), say);
  if (run_.batch > batches) {
    // Changed data have fewer; the epoch's loss is a mean over them.
    run_.loss_sum *= static_cast<double>(batches) / static_cast<double>(run_.batch);
    run_.batch = batches;
  }
  if (!same_data) run_.bad_images.clear();
  trainer.go_on_in_schedule(run_.epoch * batches + run_.batch);
  maker_.set_source(checkpoint.model().source_sha256);
  saver_.resume_from(run_.step);
  record_.resume(run_.history);
  start_.checkpoint.reset();  // frees memory of the size of network and optimizer state
}

}  // namespace rk
