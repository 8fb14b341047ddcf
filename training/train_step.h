// One training step on the device of a context, and all the state that it changes beside the
// network's own:
//
//   pixels -> network -> everybody's embeddings -> loss, dL/dE -> network backwards
//     -> everybody's gradients -> optimizer
//
// What changes from step to step (learning rate, number of the update, loss scale, labels) is read
// from the device's memory. So on a GPU everything between the upload of the pictures and the
// changed parameters is one CUDA graph, captured in the second step of the same sizes and replayed
// from then on (engine/device/captured_work.h).
//
// Two steps may be on their way to a GPU, so that it has the next one when it is through with the
// first. Where a step turns out to be hopeless, the one behind it changes nothing either.
//
// In fp16 the gradient of the loss is multiplied by a scale that the optimizer divides by again
// (kernels/blocks/optimizer_block.h): where a gradient overflows, the update is left out and the
// scale halved; it doubles after 2,000 updates without one. No scale helps where the loss itself is
// not finite: the run ends with that step.
//
// tests/cuda/step_test.cpp compares a GPU's step with the CPU's.
#pragma once

#include "engine/device/captured_work.h"
#include "engine/device/device_value.h"
#include "engine/device/mark.h"
#include "training/chunked_network.h"
#include "training/embedding_memory.h"
#include "training/network_input.h"
#include "training/trainer_options.h"

#include <array>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace rk {

class TrainStep {
 public:
  // proxies: among the program's parameters; -1: the loss has none. The options name a group of
  // processes, and a chunk.
  TrainStep(const Context& context, const TrainerOptions& options, Program& program,
            const Network& network, ParameterId proxies);

  // The pictures of the batch that comes next (NetworkInput::stage); while a step runs, too.
  void stage(std::span<const std::uint8_t> pixels) { input_.stage(pixels); }
  bool copies_pixels() const { return input_.copies_pixels(); }
  // The step on what was staged; a GPU is not waited for, but two steps at most are launched and
  // not finished. labels and identities are those of the whole batch, of all processes. InputError
  // where the loss cannot take the batch.
  void launch(std::span<const std::int64_t> labels, std::span<const std::int64_t> identities,
              double rate);
  // NaN: the step did not come so far.
  struct Outcome {
    double loss = 0;
    std::int64_t valid_queries = 0;
    double gradient_norm = 0;
    bool updated = false;   // false: loss or gradient were not finite, and nothing was changed
    bool hopeless = false;  // and a smaller loss scale will not help
  };
  Outcome finish();  // of the first that is not finished; waits for it
  // All of a step but the update, once more: on the batch of the last but one, nothing having been
  // staged since the last was launched. Memory columns are those of now.
  void go_back(std::span<const std::int64_t> labels, std::span<const std::int64_t> identities);

  // What launch() does, for whoever times its parts: on the batch of the last step.
  void embed() { network_.embed(); }
  void value_and_gradient();  // of the loss, from the embeddings
  void backward() { network_.backward(); }
  void update();
  // A chunk of the batch's pictures into the program.
  void fill(std::int64_t chunk) { input_.fill(chunk * parts_.chunk); }

  EmbeddingMemory& embedding_memory() { return memory_; }
  const EmbeddingMemory& embedding_memory() const { return memory_; }
  Optimizer& optimizer() { return optimizer_; }
  const Optimizer& optimizer() const { return optimizer_; }
  // Of the loss, and how many updates there were; waits.
  LossScaleState scale() const;
  void set_scale(const LossScaleState& scale, std::int64_t steps);

  bool captured() const { return work_.captured(); }  // the last launch was a replay
  std::vector<std::pair<std::string, std::size_t>> reserved() const;  // bytes by name

 private:
  LossInput<float> loss_input() const;
  void compute();

  const Context& context_;
  const TrainerOptions& options_;
  Parameters& parameters_;
  Program& program_;
  ParameterId proxies_;
  BatchParts parts_;
  NetworkInput input_;
  EmbeddingMemory memory_;
  ChunkedNetwork network_;
  std::unique_ptr<Loss<float>> loss_;
  Optimizer optimizer_;
  CapturedWork work_;
  Memory kept_;  // the embeddings for the memory columns: backward may overwrite them
  DeviceValue<StepState> state_;
  std::array<Mark, 2> ends_;  // of steps, in turn
  std::size_t launched_ = 0, finished_ = 0;
  std::span<const std::int64_t> labels_, identities_;  // of the step that was launched
};

}  // namespace rk
