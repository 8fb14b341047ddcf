// A network in training: its parameters, the steps it makes (training/train_step.h) and what a
// checkpoint holds of both.
//
// With chunks the network's memory is that of a chunk, and one loss call sees all embeddings
// (training/chunked_network.h). With frozen batch norm that is the whole batch's gradient but for
// rounding; with batch statistics each chunk is normalised by its own.
//
// Several processes share a batch in equal parts: each embeds its own, all embeddings come together
// so that every process computes the loss of the whole batch, and the gradients of the network are
// summed before each makes the same step. With frozen batch norm that is one process's step but for
// rounding; with batch statistics each part is normalised by its own, and the running statistics
// become the mean over the processes.
//
// A loss with proxies finds them among the parameters (/loss/proxies of a checkpoint), a row for
// each class of the data set.
//
// A step allocates nothing. The loss and the gradient's norm are looked at before the optimizer
// changes anything: if one is not finite, the step ends in a DivergedError and the parameters are
// those of before, also where a GPU has begun with the next step by then. ReLU makes 0 of NaN. With
// batch statistics that hides none: the channel's mean is not finite, and so is no gradient. With
// frozen ones a NaN shows wherever a layer's input holds an infinity (0 * inf in the gradient of
// its weight), as it does when values grow from layer to layer. Filters all of whose sums overflow
// to both sides at once go unseen, for they put out 0 and do not move, like dead units; the weights
// that do that are seen by sound(), before a checkpoint.
#pragma once

#include "data/loader/loader.h"
#include "training/train_step.h"
#include "training/trainer_options.h"

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace rk {

// NaN: the step did not come so far.
struct StepResult {
  double loss = std::numeric_limits<double>::quiet_NaN();
  std::int64_t valid_queries = 0;
  double gradient_norm = std::numeric_limits<double>::quiet_NaN();
  double rate = 0.0;
  bool updated = true;  // false: a gradient overflowed under the loss scale (fp16)
};

// What a node of the network put out, over all images of a batch.
struct LayerActivations {
  std::string name;
  double max_abs = 0.0;  // of the finite ones
  std::int64_t not_finite = 0;
  std::int64_t values = 0;
};

class Trainer {
 public:
  // Builds everything and fills the parameters from the seed. TooLittleMemory
  // (engine/device/memory_fit.h) where it would not fit, before it is taken.
  Trainer(const Context& context, const TrainerOptions& options);
  ~Trainer();

  // Makes a step on this process's share of a batch, which on the CPU is read until the next one. A
  // GPU shall never wait for the host, so there a step is put behind the one before: the result is
  // that of the step before, and there is none where there was no step under way.
  std::optional<StepResult> advance(const Batch& batch);
  // The result of the step that is still under way; none where there is none. Before anything else
  // is asked of the trainer but stage().
  std::optional<StepResult> finish();
  int under_way() const { return under_way_; }
  // advance(), then finish().
  StepResult step(const Batch& batch);
  // On a GPU: begins to upload the batch that advance() is given next.
  void stage(const Batch& next);
  // Batches are staged; on the CPU they are read where they are.
  bool stages() const { return step_->copies_pixels(); }

  std::int64_t steps() const { return steps_; }  // that have results
  // The next step's place in the schedule, which is its number unless said otherwise: where a run
  // goes on with another number of batches an epoch, epochs are what the schedule goes by.
  void go_on_in_schedule(std::int64_t place) { schedule_begins_ = steps_ - place; }
  // The step of the last result, or of the DivergedError that was thrown in its place.
  const StepResult& last() const { return begun_[last_].result; }
  // Its batch: labels and identities of this process's share, pictures on the CPU alone.
  const Batch& last_batch() const { return begun_[last_].batch; }

  Parameters& parameters() { return parameters_; }
  const Program& program() const { return program_; }
  // Are all parameters and running statistics finite, and no parameter beyond 1e12? A checkpoint of
  // others would be of no use.
  bool sound() const;

  void save(CheckpointWriter& writer) const;
  // Parameters, optimizer, memory, steps. Returns whether the memory could be taken: one of
  // another size begins empty, and so does one of other data, whose labels mean other classes.
  bool load(const Checkpoint& checkpoint, bool same_data = true);

  // Between a GPU and the parameters here: before they are read, after they were changed. Nothing
  // on the CPU.
  void download();
  void upload();
  // As of the last download(); fp16 alone has one.
  LossScaleState loss_scale() const { return scale_; }
  TrainStep& train_step() { return *step_; }

  // What is reserved, by name, in bytes.
  std::vector<std::pair<std::string, std::size_t>> reserved() const;
  std::int64_t network_parameters() const;  // without those of the loss

  // For whoever looks for the cause of a divergence. Names of the parameters that are not finite in
  // a flat buffer: values or gradients.
  std::vector<std::string> not_finite(std::span<const float> flat) const;
  // Sends the last batch's share forward once more; batch norm's statistics move on.
  std::vector<LayerActivations> activations();

 private:
  BatchParts parts() const { return {options_.batch, options_.chunk, options_.processes}; }
  void require_room(const Program::Footprint& footprint) const;
  void prepare_graphs();
  // A step from its start to its result.
  struct Begun {
    StepResult result;
    Batch batch;                                        // of this process's share
    std::vector<std::int64_t> own_labels, own_indices;  // its
    std::vector<std::int64_t> labels, identities;       // of the whole batch
  };
  std::size_t place_of(std::int64_t step) const {
    return static_cast<std::size_t>(step) % begun_.size();
  }
  void begin(const Batch& batch);
  StepResult finish_first();
  void go_back();
  [[noreturn]] void diverged(std::int64_t number, const std::string& what) const;

  const Context& context_;
  TrainerOptions options_;
  std::unique_ptr<ProcessGroup> alone_;  // where the options name no group
  Schedule schedule_;
  std::int64_t schedule_begins_ = 0;  // the step that is its 0
  Parameters parameters_;
  Program program_;
  Network network_;
  ParameterId proxies_ = -1;
  std::unique_ptr<TrainStep> step_;
  std::array<Begun, 2> begun_;  // in turn
  std::size_t last_ = 0;        // of them, the one that last() shows
  std::int64_t steps_ = 0;
  int under_way_ = 0;  // begun and without a result
  LossScaleState scale_;
  bool staged_ = false;  // the next step's batch
};

}  // namespace rk
