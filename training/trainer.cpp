#include "training/trainer.h"

#include "engine/base/error.h"
#include "engine/group/process_device.h"
#include "engine/system/host_memory.h"
#include "layers/graphs/graph_runner.h"
#include "training/loss_bytes.h"
#include "training/memory_fit.h"
#include "training/model_io.h"
#include "weights/checkpoint.h"

#include <algorithm>
#include <cmath>

namespace rk {
namespace {

bool all_finite(const float* values, std::int64_t count) {
  // Sums zeros unless a value is infinite or NaN: the loop vectorises, unlike one with an early
  // exit.
  float sum = 0.0F;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) sum += values[i] * 0.0F;
  return sum == 0.0F;
}

}  // namespace

Trainer::Trainer(const Context& context, const TrainerOptions& options)
    : context_(context),
      options_(options),
      schedule_(options.schedule),
      program_(context, parameters_,
               Program::Options{.gradients = true, .precision = options.precision}) {
  parameters_.freeze(options_.frozen);
  if (options_.processes == nullptr) {
    alone_ = group_of_one();
    options_.processes = alone_.get();
  }
  const int processes = options_.processes->size();
  const std::int64_t dim = options_.model.dim;
  expect(options_.batch % processes == 0, "[trainer] expected processes that divide {}, got {}",
         options_.batch, processes);
  if (options_.chunk == 0) options_.chunk = options_.batch / processes;
  expect(parts().share() % options_.chunk == 0, "[trainer] expected chunks that divide {}, got {}",
         parts().share(), options_.chunk);
  const LossEntry& entry = *options_.loss.entry;
  expect(options_.memory_batches == 0 || takes_memory(entry.kind), "[trainer] {} takes no memory",
         entry.name);
  NetworkSpec spec = network_spec(options_.model, options_.batchnorm);
  spec.orthogonal_embedding = options_.orthogonal_embedding;
  network_ =
      build_network(program_, spec, options_.chunk, options_.model.crop, options_.model.crop);
  build_cudnn_graphs();
  if (entry.kind == LossKind::kProxies) {
    // After the network's parameters, so that the network's gradients are one range.
    proxies_ =
        parameters_.declare("proxies", {options_.classes, dim},
                            entry.proxy_start(options_.classes, dim), ParameterGroup::kProxies);
  }
  program_.plan([this](const Program::Footprint& footprint) { require_room(footprint); });
  parameters_.initialise(context, options_.seed);
  for (Begun& step : begun_) {
    step.labels.resize(static_cast<std::size_t>(options_.batch));
    step.image_ids.resize(step.labels.size());
    step.own_labels.resize(static_cast<std::size_t>(parts().share()));
    step.own_indices.resize(step.own_labels.size());
  }
  step_ = std::make_unique<TrainStep>(context, options_, program_, network_, proxies_);
}

// Work in flight writes to memory that is about to be freed.
Trainer::~Trainer() {
  try {
    context_.synchronize();
  } catch (const DeviceFault&) {
    // Another call has already reported what broke the GPU's work.
  }
}

// Refuses what does not fit before allocating it, and names the batch that would fit: on the CPU
// the system would kill the program without a message. The optimizer takes up to twice the size of
// the parameters, and a save twice the size of what it saves.
void Trainer::require_room(const Program::Footprint& footprint) const {
  const std::int64_t share = parts().share();
  const auto array =
      static_cast<std::int64_t>(parameters_.flat_elements()) * std::int64_t{sizeof(float)};
  const auto require = [&](std::int64_t fixed, std::int64_t free, MemoryOf where) {
    MemoryNeed need{
        .fixed = static_cast<std::int64_t>(footprint.workspace_bytes) + fixed +
                 loss_bytes(options_, context_.on_gpu()) + options_.other_bytes,
        .per_image = static_cast<std::int64_t>(footprint.arena_bytes) / options_.chunk,
        // Sums of gradients, and all embeddings with theirs.
        .in_parts = array + 2 * options_.batch * options_.model.dim * std::int64_t{sizeof(float)},
        .processes = options_.processes->size()};
    if (where == MemoryOf::kMachine) {
      for (std::int64_t* bytes : {&need.fixed, &need.per_image, &need.in_parts}) {
        *bytes = sum_on_machine(*options_.processes, *bytes);
      }
    }
    const std::string advice = fitting_advice(need, free, share, options_.chunk, where);
    if (!advice.empty()) throw TooLittleMemory(advice, chunk_that_fits(need, free, share), where);
  };
  if (context_.on_gpu()) {
    constexpr std::int64_t kPictures = 2;  // of this batch, and of the one uploaded meanwhile
    // cuDNN and cuBLAS load their kernels at first use.
    constexpr std::int64_t kLibraries = std::int64_t{512} << 20;
    const std::int64_t side = options_.model.crop;
    return require(2 * array + kPictures * share * 3 * side * side + kLibraries,
                   static_cast<std::int64_t>(context_.free_bytes()), MemoryOf::kGpu);
  }
  // Values and gradients have addresses already, but take memory only once they are written.
  constexpr std::int64_t kTraining = 4, kSaving = std::int64_t{2} * 3;  // gradients are not saved
  require((kTraining + kSaving) * array, free_host_bytes(), MemoryOf::kMachine);
}

void Trainer::build_cudnn_graphs() {
  const std::vector<Graph> graphs = graphs_of(program_);
  if (!graphs.empty()) build_graphs(context_, graphs, options_.preparing);
}

std::optional<StepResult> Trainer::advance(const Batch& batch) {
  begin(batch);
  if (context_.on_gpu() && in_flight_ == 1) return std::nullopt;
  return finish_first();
}

std::optional<StepResult> Trainer::finish() {
  if (in_flight_ == 0) return std::nullopt;
  return finish_first();
}

StepResult Trainer::step(const Batch& batch) {
  expect(in_flight_ == 0, "[trainer] expected no step under way, got {}", in_flight_);
  begin(batch);
  return finish_first();
}

void Trainer::begin(const Batch& batch) {
  expect(batch.count == parts().share(), "[trainer] expected {} images, got {}", parts().share(),
         batch.count);
  const std::int64_t number = steps_ + in_flight_;
  Begun& step = begun_[place_of(number)];
  step.result = StepResult{.rate = rate_of(number)};
  std::ranges::copy(batch.labels, step.own_labels.begin());
  std::ranges::copy(batch.indices, step.own_indices.begin());
  step.batch = batch;
  step.batch.labels = step.own_labels;
  step.batch.indices = step.own_indices;
  if (copies_pixels()) step.batch.pixels = {};
  options_.processes->all_gather<std::int64_t>(batch.labels, step.labels);
  options_.processes->all_gather<std::int64_t>(batch.indices, step.image_ids);
  if (!std::exchange(staged_, false)) step_->stage(batch.pixels);
  try {
    step_->begin(step.labels, step.image_ids, step.result.rate);
  } catch (const InputError& error) {
    if (in_flight_ > 0) finish_first();
    last_ = place_of(number);
    diverged(number, error.what());
  }
  ++in_flight_;
}

StepResult Trainer::finish_first() {
  last_ = place_of(steps_);
  StepResult& result = begun_[last_].result;
  --in_flight_;
  std::string trouble;
  try {
    const TrainStep::Outcome outcome = step_->finish();
    result.loss = outcome.loss;
    result.valid_queries = outcome.valid_queries;
    result.gradient_norm = outcome.gradient_norm;
    result.updated = outcome.updated;
    if (!std::isfinite(outcome.loss)) {
      trouble = fmt::format("the loss is {}", outcome.loss);
    } else if (outcome.hopeless) {
      trouble =
          fmt::format("the gradient's norm is {} (loss {:g})",
                      std::isnan(outcome.gradient_norm) ? "not a number"
                                                        : fmt::format("{}", outcome.gradient_norm),
                      outcome.loss);
    }
  } catch (const InputError& error) {
    trouble = error.what();
  }
  if (!trouble.empty()) {
    if (in_flight_ > 0) recompute_last_step();
    diverged(steps_, trouble);
  }
  ++steps_;
  return result;
}

// Repeats the diverged step, after the step behind it, so that pictures, activations and gradients
// are those of the batch that the error names.
void Trainer::recompute_last_step() {
  in_flight_ = 0;
  try {
    step_->finish();
  } catch (const InputError&) {
    // The error of a batch that is no longer needed.
  }
  step_->recompute(begun_[last_].labels, begun_[last_].image_ids);
}

void Trainer::diverged(std::int64_t number, const std::string& what) const {
  const Begun& step = begun_[place_of(number)];
  fail<DivergedError>(
      "training diverged in step {} (batch {} of epoch {}): {}, learning rate {:g}; "
      "lower --lr or lengthen --warmup",
      number + 1, step.batch.index + 1, step.batch.epoch + 1, what, step.result.rate);
}

void Trainer::stage(const Batch& next) {
  if (!copies_pixels()) return;
  step_->stage(next.pixels);
  staged_ = true;
}

void Trainer::download() {
  expect(in_flight_ == 0, "[trainer] expected no step under way, got {}", in_flight_);
  parameters_.download();
  const bool scaled = options_.precision == Precision::kFp16;
  if (!scaled && scale_.scale == 0) return;
  const LossScaleState now = step_->scale();
  scale_ = {.updates = now.updates,
            .scale = scaled ? now.scale : scale_.scale,
            .good_steps = scaled ? now.good_steps : scale_.good_steps};
}

void Trainer::upload() { parameters_.upload(); }

bool Trainer::sound() const {
  const auto count = static_cast<std::int64_t>(parameters_.flat_elements());
  const float* values = parameters_.values().data();
  if (!all_finite(values, count)) return false;
  float largest = 0.0F;
#pragma omp simd reduction(max : largest)
  for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(values[i]));
  if (largest > kLargestParameter) return false;
  for (std::size_t i = 0; i < parameters_.buffers().size(); ++i) {
    const auto& entry = parameters_.buffers()[i];
    if (entry.counter) continue;
    if (!all_finite(parameters_.buffer(static_cast<BufferId>(i)), entry.elements)) return false;
  }
  std::vector<float> room;
  const Optimizer& optimizer = step_->optimizer();
  return std::ranges::all_of(optimizer.states(), [&](const Optimizer::State& state) {
    return all_finite(optimizer.on_host(state, room).data(), state.count);
  });
}

void Trainer::save(CheckpointWriter& writer) const {
  save_parameters(parameters_, writer);
  save_optimizer(step_->optimizer(), parameters_, writer);
  step_->embedding_memory().save(writer);
}

bool Trainer::load(const Checkpoint& checkpoint, bool same_data) {
  load_parameters(checkpoint, parameters_);
  load_loss_parameters(checkpoint, parameters_);
  load_optimizer(checkpoint, parameters_, step_->optimizer());
  steps_ = checkpoint.run().step;
  upload();
  scale_ = checkpoint.run().loss_scale;
  step_->set_scale(scale_, steps_);
  return same_data ? step_->embedding_memory().load(checkpoint) : options_.memory_batches == 0;
}

std::int64_t Trainer::network_parameters() const {
  return parameters_.parameter_count() -
         (proxies_ >= 0 ? parameters_.entry(proxies_).elements() : 0);
}

std::vector<std::string> Trainer::not_finite(std::span<const float> flat) const {
  std::vector<std::string> names;
  for (const Parameters::Entry& entry : parameters_.entries()) {
    if (!all_finite(flat.data() + entry.offset, entry.elements())) names.push_back(entry.name);
  }
  return names;
}

std::vector<LayerActivations> Trainer::activations() {
  const auto& nodes = program_.nodes();
  std::vector<LayerActivations> layers(nodes.size());
  for (std::int64_t c = 0; c < parts().chunks(); ++c) {
    step_->fill(c);
    program_.begin_forward();
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      nodes[n]->forward();
      // Read now: a later layer may reuse the memory.
      LayerActivations& layer = layers[n];
      layer.name = nodes[n]->name();
      for (const float value : program_.read(program_.tape().links[n].output)) {
        ++layer.values;
        if (std::isfinite(value)) {
          layer.max_abs = std::max(layer.max_abs, std::abs(static_cast<double>(value)));
        } else {
          ++layer.not_finite;
        }
      }
    }
  }
  return layers;
}

std::vector<std::pair<std::string, std::size_t>> Trainer::reserved() const {
  const std::size_t flat = parameters_.flat_elements() * sizeof(float);
  std::vector<std::pair<std::string, std::size_t>> groups = {
      {"parameters", flat},
      {"gradients", flat},
      {"activations and their gradients", program_.footprint().arena_bytes},
      {"workspace", program_.footprint().workspace_bytes}};
  for (auto& group : step_->reserved()) groups.push_back(std::move(group));
  return groups;
}

std::size_t Trainer::state_bytes() const {
  return parameters_.flat_elements() * sizeof(float) + step_->optimizer().state_bytes() +
         step_->embedding_memory().bytes();
}

}  // namespace rk
