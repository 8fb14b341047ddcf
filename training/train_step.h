// One training step on a context's device, and all the state it changes besides the network's own:
//
//   pixels -> network -> everybody's embeddings -> loss, dL/dE -> network backwards
//     -> everybody's gradients -> optimizer
//
// All that changes from step to step (learning rate, number of the update, loss scale, labels) is
// read from device memory. So on a GPU everything from the uploaded pictures to the changed
// parameters is one CUDA graph, captured in the second step with the same sizes and then replayed
// (engine/device/captured_work.h).
//
// Two steps may be in flight on a GPU, so that it can start the next as soon as it has finished the
// first. If a step turns out to be hopeless, the step after it changes nothing either.
//
// In fp16 the gradient of the loss is multiplied by a scale, which the optimizer divides out again
// (kernels/blocks/optimizer_block.h). If a gradient overflows, the update is skipped and the scale
// halved; after 2,000 updates without overflow it doubles. No scale helps if the loss itself is not
// finite: the run ends with that step.
//
// tests/cuda/step_test.cpp compares a GPU's step with the CPU's.
#pragma once

#include "engine/device/captured_work.h"
#include "engine/device/device_value.h"
#include "engine/device/in_turn.h"
#include "engine/device/mark.h"
#include "layers/networks/network.h"
#include "training/chunked_network.h"
#include "training/embedding_memory.h"
#include "training/network_input.h"
#include "training/trainer_options.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace rk {

class TrainStep {
 public:
  // proxies: a parameter of the program; -1: the loss has none. The options must name a process
  // group and a chunk.
  TrainStep(const Context& context, const TrainerOptions& options, Program& program,
            const Network& network, ParameterId proxies);

  // Stages the pictures of the next batch (NetworkInput::stage); also while a step runs.
  void stage(std::span<const std::uint8_t> pixels) { input_.stage(pixels); }
  bool copies_pixels() const { return input_.copies_pixels(); }
  // Begins the step on the staged batch without waiting for a GPU; at most two steps may be
  // begun and not finished. labels and image_ids: of the whole batch, of all processes. Throws
  // InputError if the loss cannot take the batch.
  void begin(std::span<const std::int64_t> labels, std::span<const std::int64_t> image_ids,
             double rate);
  struct Outcome {
    double loss = 0;
    std::int64_t valid_queries = 0;
    double gradient_norm = 0;
    bool updated = false;   // false: loss or gradient not finite, no update
    bool hopeless = false;  // not updated, and a smaller loss scale will not help
  };
  Outcome finish();  // of the oldest unfinished step; waits for it
  // Repeats all of a step but the update, on the batch of the last step but one; nothing may have
  // been staged since the last begin(). Memory columns are the present ones.
  void recompute(std::span<const std::int64_t> labels, std::span<const std::int64_t> image_ids);

  // The parts of a step, for callers that time them: on the batch of the last step.
  void embed() { network_.embed(); }
  void value_and_gradient();  // the loss's, from the embeddings
  void backward() { network_.backward(); }
  void update();
  // Writes a chunk of the batch's pictures into the program's input.
  void fill(std::int64_t chunk) { input_.fill(chunk * parts_.chunk); }

  EmbeddingMemory& embedding_memory() { return memory_; }
  const EmbeddingMemory& embedding_memory() const { return memory_; }
  Optimizer& optimizer() { return optimizer_; }
  const Optimizer& optimizer() const { return optimizer_; }
  // The loss scale and the number of updates; waits.
  LossScaleState scale() const;
  void set_scale(const LossScaleState& scale, std::int64_t steps);

  bool captured() const { return work_.captured(); }  // whether the last step was a replay
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
  Memory kept_;  // the embeddings to push into the memory: backward may overwrite the originals
  DeviceValue<StepState> state_;
  InTurn<Mark> ends_;                                 // of steps
  std::span<const std::int64_t> labels_, image_ids_;  // of the step begun last
};

}  // namespace rk
