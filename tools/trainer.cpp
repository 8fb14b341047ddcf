#include "tools/trainer.h"

#include "engine/error.h"
#include "tools/model_io.h"

#include <algorithm>
#include <cmath>

namespace rk {
namespace {

bool all_finite(const float* values, std::int64_t count) {
  // A sum of zeros unless something is infinite or not a number: it vectorises, an early exit does
  // not.
  float sum = 0.0F;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) sum += values[i] * 0.0F;
  return sum == 0.0F;
}

}  // namespace

Trainer::Trainer(const Context& context, const TrainerOptions& options)
    : context_(context),
      options_(options),
      table_(float_table(options.model)),
      schedule_(options.schedule),
      program_(context, parameters_, Program::Options{.gradients = true}) {
  NetworkSpec spec = network_spec(options.model, options.batchnorm);
  spec.orthogonal_embedding = options.orthogonal_embedding;
  network_ = build_network(program_, spec, options.batch, options.model.crop, options.model.crop);
  program_.plan();
  parameters_.initialise(options.seed);
  loss_ = make_loss<float>(options.loss);
  loss_->plan(context,
              {.rows = options.batch, .memory = 0, .dim = options.model.dim, .classes = 0});
  optimizer_ = std::make_unique<Optimizer>(
      options.optimizer,
      optimizer_groups(parameters_, options.embedding_rate, options.weight_decay),
      static_cast<std::int64_t>(parameters_.flat_elements()));
}

StepResult Trainer::step(const Batch& batch) {
  expect(batch.count == options_.batch, "[trainer] expected a batch of {}, got {}", options_.batch,
         batch.count);
  StepResult result;
  result.rate = schedule_.rate(steps_);
  const auto diverged = [&](const std::string& what) {
    fail<DivergedError>(
        "training diverged in step {} (batch {} of epoch {}): {}, learning rate {:g}; "
        "lower --lr or lengthen --warmup",
        steps_ + 1, batch.index + 1, batch.epoch + 1, what, result.rate);
  };

  fill_input(program_, network_.input, table_, batch.pixels);
  program_.forward();

  LossInput<float> input;
  input.rows = batch.count;
  input.dim = options_.model.dim;
  input.embeddings = program_.value(network_.embeddings);
  input.labels = batch.labels.data();
  input.identities = batch.indices.data();
  LossOutput<float> output;
  output.grad = program_.gradient(network_.embeddings);
  try {
    loss_->run(context_, input, output);
  } catch (const InputError& error) {
    diverged(error.what());
  }
  result.loss = output.loss;
  result.valid_queries = output.valid_queries;
  if (!std::isfinite(result.loss)) diverged(fmt::format("the loss is {}", result.loss));

  program_.backward();
  const auto count = static_cast<std::int64_t>(parameters_.flat_elements());
  result.gradient_norm = global_norm(context_, parameters_.gradients().data(), count);
  if (!std::isfinite(result.gradient_norm)) {
    diverged(
        fmt::format("the gradient's norm is {} (loss {:g})", result.gradient_norm, result.loss));
  }
  optimizer_->step(context_, {.rate = result.rate, .number = steps_ + 1},
                   parameters_.values().data(), parameters_.gradients().data());
  ++steps_;
  return result;
}

bool Trainer::finite() const {
  if (!all_finite(parameters_.values().data(),
                  static_cast<std::int64_t>(parameters_.flat_elements()))) {
    return false;
  }
  for (std::size_t i = 0; i < parameters_.buffers().size(); ++i) {
    const auto& entry = parameters_.buffers()[i];
    if (entry.counter) continue;
    if (!all_finite(parameters_.buffer(static_cast<BufferId>(i)), entry.elements)) return false;
  }
  return true;
}

void Trainer::save(CheckpointWriter& writer) const {
  save_parameters(parameters_, writer);
  save_optimizer(*optimizer_, parameters_, writer);
}

void Trainer::load(const Checkpoint& checkpoint) {
  load_parameters(checkpoint, parameters_);
  load_optimizer(checkpoint, parameters_, *optimizer_);
  steps_ = checkpoint.run().step;
}

std::vector<std::pair<std::string, std::size_t>> Trainer::memory() const {
  const std::size_t flat = parameters_.flat_elements() * sizeof(float);
  return {{"parameters", flat},
          {"gradients", flat},
          {"optimizer", optimizer_->state_bytes()},
          {"activations and their gradients", program_.memory().arena_bytes},
          {"workspace", program_.memory().workspace_bytes},
          {"loss", static_cast<std::size_t>(loss_->bytes())}};
}

}  // namespace rk
