// One training step, and all the state it changes.
//
//   pixels -> network -> embeddings -> loss, dL/dE -> network backwards -> optimizer
//
// step() allocates nothing. The loss and the gradient's norm are looked at before the optimizer
// changes anything: if one is not finite, step() throws DivergedError and the parameters are those
// of before.
#pragma once

#include "data/loader.h"
#include "engine/optimizer.h"
#include "engine/program.h"
#include "engine/schedule.h"
#include "layers/resnet.h"
#include "losses/registry.h"
#include "tools/network_input.h"
#include "weights/checkpoint.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rk {

struct TrainerOptions {
  ModelDescription model;
  BatchNormMode batchnorm = BatchNormMode::kBatch;
  bool orthogonal_embedding = false;
  LossSpec loss;
  OptimizerParams optimizer;
  double weight_decay = 0.0;
  double embedding_rate = 1.0;
  ScheduleParams schedule;
  std::int64_t batch = 128;
  std::uint64_t seed = 0;
};

struct StepResult {
  double loss = 0.0;
  std::int64_t valid_queries = 0;
  double gradient_norm = 0.0;
  double rate = 0.0;
};

class Trainer {
 public:
  // Builds everything and fills the parameters from the seed.
  Trainer(const Context& context, const TrainerOptions& options);

  StepResult step(const Batch& batch);
  std::int64_t steps() const { return steps_; }

  Parameters& parameters() { return parameters_; }
  // Are all parameters and running statistics finite? A checkpoint of others would be of no use.
  bool finite() const;

  void save(CheckpointWriter& writer) const;
  void load(const Checkpoint& checkpoint);  // parameters, optimizer, steps

  // What is reserved, by name, in bytes.
  std::vector<std::pair<std::string, std::size_t>> memory() const;

 private:
  const Context& context_;
  TrainerOptions options_;
  FloatTable table_;
  Schedule schedule_;
  Parameters parameters_;
  Program program_;
  Network network_;
  std::unique_ptr<Loss<float>> loss_;
  std::unique_ptr<Optimizer> optimizer_;
  std::int64_t steps_ = 0;
};

}  // namespace rk
