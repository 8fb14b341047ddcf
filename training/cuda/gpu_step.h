// A training step on a GPU (training/trainer.h says what a step is): everything between the upload
// of the pictures and the changed parameters is one CUDA graph, captured in the second step of the
// same sizes and replayed from then on. What changes from step to step (learning rate, update
// number, loss scale, labels) is read from device memory, so a replay computes the bits that the
// same nodes compute one by one.
//
// In fp16 the gradient of the loss is multiplied by a scale that the optimizer divides by again
// (kernels/blocks/optimizer_block.h): where a gradient overflows, the update is left out and the
// scale halved; it doubles after 2,000 updates without one. No scale helps where the loss itself is
// not finite: the run ends with that step, before anybody reads the embeddings that it put into the
// memory.
//
// tests/cuda/step_test.cpp compares it with the CPU's step.
#pragma once

#include "engine/device/cuda/buffer.h"
#include "engine/device/cuda/graph.h"
#include "engine/group/device_group.h"
#include "kernels/blocks/optimizer_block.h"
#include "layers/gpu/input.h"
#include "losses/frame/loss.h"
#include "training/batch_parts.h"
#include "training/chunked_network.h"
#include "training/embedding_memory.h"
#include "training/optimizer.h"
#include "weights/checkpoint.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rk {

struct Batch;
struct TrainerOptions;
class FloatTable;

// The parts of a trainer that a step works on.
struct StepParts {
  const Context& context;
  const TrainerOptions& options;
  Program& program;
  TensorId input;
  ChunkedNetwork& network;
  Parameters& parameters;
  ParameterId proxies;  // -1: the loss has none
  Optimizer& optimizer;
  EmbeddingMemory& memory;
  const FloatTable& table;
  BatchParts batch;
  ProcessGroup& processes;
  std::int64_t network_elements;  // of the flat buffers; the loss's proxies lie behind
};

class GpuStep {
 public:
  explicit GpuStep(const StepParts& parts);
  ~GpuStep();

  // The pictures of the batch that comes next; may be called while a step runs.
  void stage(const Batch& batch);
  // The step on what was staged, without waiting. labels and identities are those of the whole
  // batch, of all processes.
  void launch(std::span<const std::int64_t> labels, std::span<const std::int64_t> identities,
              double rate);
  struct Outcome {
    double loss = 0;
    std::int64_t valid_queries = 0;
    double gradient_norm = 0;
    bool updated = false;   // false: a gradient was not finite, and nothing was changed
    bool hopeless = false;  // and a smaller loss scale will not help
  };
  Outcome finish();  // waits

  // A chunk of the pictures that the last step took, into the program.
  void fill(std::int64_t chunk) const { input_.fill(chunk * parts_.batch.chunk); }

  // Between device memory and the parameters and optimizer of the host, for saving and after
  // loading.
  void pull();
  void push();
  LossScaleState scale() const { return scale_; }  // as of the last pull()
  void set_scale(const LossScaleState& scale, std::int64_t steps);

  std::vector<std::pair<std::string, std::size_t>> memory() const;  // bytes by name

 private:
  void capture();
  void enqueue();
  void gather();
  void backward();
  void sum_while_going_back();
  void update();

  StepParts parts_;
  std::unique_ptr<DeviceGroup> group_;
  std::unique_ptr<Loss<float>> loss_;
  GpuInput input_;
  Memory kept_;  // the embeddings for the memory columns: backward may overwrite them
  Memory share_factor_;
  Memory step_, squares_, groups_, first_, second_;
  int group_count_ = 0;
  PinnedBuffer host_step_, host_rate_;
  LossScaleState scale_;
  // Memory columns in the last step whose kernels were started one by one; -1: there was none.
  std::int64_t ran_with_ = -1;
  std::unique_ptr<CudaGraph> graph_;
  bool captures_;  // as asked for, and as long as it can be
};

}  // namespace rk
