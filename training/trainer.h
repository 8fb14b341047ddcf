// A network in training: its parameters, its steps (training/train_step.h), and what a checkpoint
// stores of both.
//
// With chunks, the network's memory is that of one chunk, and a single call of the loss sees all
// embeddings (training/chunked_network.h). With frozen batch norm this gives the whole batch's
// gradient up to rounding; with batch statistics each chunk is normalised by its own.
//
// Several processes share a batch in equal parts: each embeds its part, all embeddings are gathered
// so that every process computes the loss of the whole batch, and the network's gradients are
// summed before every process makes the same step. With frozen batch norm this equals one process's
// step up to rounding; with batch statistics each part is normalised by its own, and the running
// statistics become their mean over the processes.
//
// A loss's proxies are among the parameters (/loss/proxies in a checkpoint), one row for each class
// of the data set.
//
// A step allocates nothing. The loss and the gradient's norm are checked before the optimizer
// changes anything: if one is not finite, the step ends in a DivergedError and the parameters are
// those from before the step, even if a GPU has begun the next step by then. A maximum pool passes
// over most NaN, and so may a ReLU that a library fuses into a convolution. With batch statistics
// this hides no NaN: the channel's mean is not finite, and so neither is the gradient. With frozen
// ones, a NaN shows up wherever a layer's input holds an infinity (0 * inf in the gradient of its
// weight), as happens when values grow from layer to layer. Filters whose sums all overflow to both
// sides at once go unnoticed, because they output 0 and do not change, like dead units; sound()
// finds the weights that cause this before a checkpoint is written.
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

// NaN: the step failed before computing the value.
struct StepResult {
  double loss = std::numeric_limits<double>::quiet_NaN();
  std::int64_t valid_queries = 0;
  double gradient_norm = std::numeric_limits<double>::quiet_NaN();
  double rate = 0.0;
  bool updated = true;  // false: a gradient overflowed under the loss scale (fp16)
};

// The output of one node of the network, over all images of a batch.
struct LayerActivations {
  std::string name;
  double max_abs = 0.0;  // of the finite ones
  std::int64_t not_finite = 0;
  std::int64_t values = 0;
};

class Trainer {
 public:
  // Builds everything and fills the parameters from the seed. Throws TooLittleMemory
  // (training/memory_fit.h) before allocating what would not fit.
  Trainer(const Context& context, const TrainerOptions& options);
  ~Trainer();

  // Makes a step on this process's share of a batch. The CPU reads the batch until the next call. A
  // GPU must never wait for the host, so there the step is queued behind the one before: the result
  // returned is the previous step's, or none if no step was in flight.
  std::optional<StepResult> advance(const Batch& batch);
  // Returns the result of the step still in flight, or none if there is none. Must be called
  // before any call but advance() and stage().
  std::optional<StepResult> finish();
  int steps_in_flight() const { return in_flight_; }
  // advance(), then finish().
  StepResult step(const Batch& batch);
  // On a GPU: begins to upload the batch that advance() is given next.
  void stage(const Batch& next);
  // Whether batches are staged; on the CPU they are read in place.
  bool copies_pixels() const { return step_->copies_pixels(); }

  std::int64_t steps() const { return steps_; }  // steps with results
  // Sets the next step's place in the schedule, which otherwise is the step's number: a run resumed
  // with another number of batches per epoch follows the schedule by epochs.
  void go_on_in_schedule(std::int64_t place) { schedule_begins_ = steps_ - place; }
  // The learning rate of step number `step`, from 0.
  double rate_of(std::int64_t step) const { return schedule_.rate(step - schedule_begins_); }
  // The step of the last result, or of the DivergedError thrown in its place.
  const StepResult& last() const { return begun_[last_].result; }
  // That step's batch: labels and image_ids of this process's share, pictures on the CPU only.
  const Batch& last_batch() const { return begun_[last_].batch; }
  // The pictures of that whole batch: of process 0's share, then of the next one's.
  std::span<const std::int64_t> last_images() const { return begun_[last_].image_ids; }

  Parameters& parameters() { return parameters_; }
  const Program& program() const { return program_; }
  // Whether all parameters and running statistics are finite and no parameter exceeds
  // kLargestParameter; otherwise a checkpoint would be of no use.
  bool sound() const;

  void save(CheckpointWriter& writer) const;
  // Loads parameters, optimizer, memory and steps. Returns whether the memory could be restored:
  // one of another size starts empty, and so does one of other data, whose labels mean other
  // classes.
  bool load(const Checkpoint& checkpoint, bool same_data = true);

  // Copy parameters from a GPU before they are read on the host, and to it after they were changed
  // there. Do nothing on the CPU.
  void download();
  void upload();
  // As of the last download(). Only fp16 has one, but a run that goes on from fp16 in another
  // precision keeps its own, with the number of updates, fewer than the steps, that Adam counts.
  LossScaleState loss_scale() const { return scale_; }
  TrainStep& train_step() { return *step_; }

  // Reserved bytes, by name.
  std::vector<std::pair<std::string, std::size_t>> reserved() const;
  std::size_t state_bytes() const;          // of what save() writes
  std::int64_t network_parameters() const;  // without the loss's

  // For finding the cause of a divergence: the names of the parameters that are not finite in a
  // flat buffer (values or gradients).
  std::vector<std::string> not_finite(std::span<const float> flat) const;
  // Sends the last batch's share forward again; this updates batch norm's statistics.
  std::vector<LayerActivations> activations();

 private:
  BatchParts parts() const { return {options_.batch, options_.chunk, options_.processes}; }
  void require_room(const Program::Footprint& footprint) const;
  void build_cudnn_graphs();
  // A step from its start to its result.
  struct Begun {
    StepResult result;
    Batch batch;                                        // of this process's share
    std::vector<std::int64_t> own_labels, own_indices;  // of this process's share
    std::vector<std::int64_t> labels, image_ids;        // of the whole batch
  };
  std::size_t place_of(std::int64_t step) const {
    return static_cast<std::size_t>(step) % begun_.size();
  }
  void begin(const Batch& batch);
  StepResult finish_first();
  void recompute_last_step();
  [[noreturn]] void diverged(std::int64_t number, const std::string& what) const;

  const Context& context_;
  TrainerOptions options_;
  std::unique_ptr<ProcessGroup> alone_;  // where the options name no group
  Schedule schedule_;
  std::int64_t schedule_begins_ = 0;  // the step at which the schedule is at 0
  Parameters parameters_;
  Program program_;
  Network network_;
  ParameterId proxies_ = -1;
  std::unique_ptr<TrainStep> step_;
  std::array<Begun, 2> begun_;  // in turn
  std::size_t last_ = 0;        // index into begun_ of the step that last() returns
  std::int64_t steps_ = 0;
  int in_flight_ = 0;  // begun, without a result yet
  LossScaleState scale_;
  bool staged_ = false;  // the next step's batch is staged
};

}  // namespace rk
