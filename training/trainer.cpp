#include "training/trainer.h"

#include "engine/base/error.h"
#include "engine/base/note.h"
#include "engine/device/cuda/context.h"
#include "engine/device/dispatch.h"
#include "engine/device/memory_fit.h"
#include "engine/system/host_memory.h"
#include "layers/graphs/graph_run.h"
#include "training/cuda/gpu_step.h"
#include "training/model_io.h"

#include <algorithm>
#include <cmath>

namespace rk {
namespace {

// Far beyond any network's, and far below what makes sums overflow to both sides at once.
constexpr float kLargestParameter = 1e12F;

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
      program_(context, parameters_,
               Program::Options{
                   .gradients = true, .precision = options.precision, .frozen = options.frozen}) {
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
  expect(options_.memory == 0 || takes_memory(entry.kind), "[trainer] {} takes no memory",
         entry.name);
  NetworkSpec spec = network_spec(options_.model, options_.batchnorm);
  spec.orthogonal_embedding = options_.orthogonal_embedding;
  network_ =
      build_network(program_, spec, options_.chunk, options_.model.crop, options_.model.crop);
  prepare_graphs();
  if (entry.kind == LossKind::kProxies) {
    // Behind the network's, whose gradients are then one range.
    proxies_ =
        parameters_.declare("proxies", {options_.classes, dim},
                            entry.proxy_start(options_.classes, dim), ParameterGroup::kProxies);
  }
  program_.plan([this](const Program::Footprint& footprint) { require_room(footprint); });
  parameters_.initialise(context, options_.seed);
  labels_.resize(static_cast<std::size_t>(options_.batch));
  identities_.resize(labels_.size());
  last_labels_.resize(static_cast<std::size_t>(parts().share()));
  last_indices_.resize(last_labels_.size());
  memory_ = EmbeddingMemory(context, options_.memory, options_.batch, dim);
  chunked_ =
      std::make_unique<ChunkedNetwork>(program_, network_.embeddings, parts(), network_elements(),
                                       [this](std::int64_t chunk) { fill(chunk); });
  optimizer_ = std::make_unique<Optimizer>(
      options_.optimizer,
      optimizer_groups(parameters_, options_.embedding_rate, options_.weight_decay,
                       options_.proxy_rate, options_.frozen),
      static_cast<std::int64_t>(parameters_.flat_elements()));
  context.on_gpu() ? plan_gpu() : plan_cpu();
}

Trainer::~Trainer() = default;

// What does not fit is said before it is asked for, with the batch that would: on the CPU the
// system would end the program without a word. The optimizer has up to twice the parameters, and a
// save twice what it saves; what the loss takes is small beside the rest.
void Trainer::require_room(const Program::Footprint& footprint) const {
  const auto require = [&](std::size_t parameter_arrays, std::int64_t beside, std::int64_t free,
                           MemoryOf where) {
    const std::size_t arrays = parameter_arrays * parameters_.flat_elements() * sizeof(float);
    const MemoryNeed need{
        .fixed = static_cast<std::int64_t>(footprint.workspace_bytes + arrays) + beside,
        .per_image = static_cast<std::int64_t>(footprint.arena_bytes) / options_.chunk};
    const std::string advice = fitting_advice(need, free, parts().share(), options_.chunk, where);
    if (advice.empty()) return;
    throw TooLittleMemory(advice, chunk_that_fits(need, free, parts().share()));
  };
  if constexpr (kHasCuda) {
    if (context_.on_gpu()) {
      return require(2, 0, static_cast<std::int64_t>(context_.cuda().free_bytes()), MemoryOf::kGpu);
    }
  }
  // Values and gradients have their addresses, but no memory before they are written.
  constexpr std::size_t kTraining = 4, kSaving = 2 * 3;  // gradients are not saved
  require(kTraining + kSaving, options_.beside, free_host_bytes(), MemoryOf::kMachine);
}

void Trainer::prepare_graphs() {
  if constexpr (kHasCuda) {
    if (context_.on_gpu()) build_graphs(context_, graphs_of(program_), options_.preparing);
  }
}

void Trainer::plan_gpu() {
  if constexpr (kHasCuda) {
    gpu_ = std::make_shared<GpuStep>(StepParts{.context = context_,
                                               .options = options_,
                                               .program = program_,
                                               .input = network_.input,
                                               .network = *chunked_,
                                               .parameters = parameters_,
                                               .proxies = proxies_,
                                               .optimizer = *optimizer_,
                                               .memory = memory_,
                                               .table = table_,
                                               .batch = parts(),
                                               .processes = *options_.processes,
                                               .network_elements = network_elements()});
  }
}

void Trainer::plan_cpu() {
  loss_ = make_loss<float>(options_.loss);
  loss_->plan(context_, {.rows = options_.batch,
                         .memory = memory_.capacity(),
                         .dim = options_.model.dim,
                         .classes = proxies_ >= 0 ? options_.classes : 0});
}

std::int64_t Trainer::network_elements() const {
  return proxies_ >= 0 ? parameters_.entry(proxies_).offset
                       : static_cast<std::int64_t>(parameters_.flat_elements());
}

void Trainer::fill(std::int64_t chunk) {
  if constexpr (kHasCuda) {
    if (gpu_ != nullptr) return gpu_->fill(chunk);
  }
  const std::span<const std::uint8_t> pixels = last_batch_.pixels;
  const std::size_t bytes = pixels.size() / static_cast<std::size_t>(parts().chunks());
  fill_input(program_, network_.input, table_,
             pixels.subspan(static_cast<std::size_t>(chunk) * bytes, bytes));
}

void Trainer::gather_labels(const Batch& batch) {
  options_.processes->gather<std::int64_t>(batch.labels, labels_);
  options_.processes->gather<std::int64_t>(batch.indices, identities_);
}

// Embeddings of the whole batch, from all who have a share of it.
void Trainer::gather() {
  if (options_.processes->alone()) return;
  ProcessGroup& group = *options_.processes;
  const std::span<float> all(chunked_->embeddings(),
                             static_cast<std::size_t>(options_.batch * options_.model.dim));
  group.gather<float>(chunked_->share(), all);
  if (options_.batchnorm == BatchNormMode::kBatch) {
    const std::span<float> statistics = parameters_.statistics();
    group.sum(statistics);
    for (float& value : statistics) value /= static_cast<float>(group.size());
  }
}

StepResult Trainer::step(const Batch& batch, const std::function<void()>& meanwhile) {
  expect(batch.count == parts().share(), "[trainer] expected {} images, got {}", parts().share(),
         batch.count);
  last_ = StepResult{.rate = schedule_.rate(steps_)};
  remember(batch);
  gather_labels(batch);
  if (gpu_ != nullptr) {
    step_on_gpu(batch, meanwhile);
  } else {
    step_on_cpu();
  }
  ++steps_;
  return last_;
}

void Trainer::remember(const Batch& batch) {
  last_batch_ = batch;
  std::ranges::copy(batch.labels, last_labels_.begin());
  std::ranges::copy(batch.indices, last_indices_.begin());
  last_batch_.labels = last_labels_;
  last_batch_.indices = last_indices_;
  if (gpu_ != nullptr) last_batch_.pixels = {};
}

void Trainer::diverged(const std::string& what) const {
  fail<DivergedError>(
      "training diverged in step {} (batch {} of epoch {}): {}, learning rate {:g}; "
      "lower --lr or lengthen --warmup",
      steps_ + 1, last_batch_.index + 1, last_batch_.epoch + 1, what, last_.rate);
}

void Trainer::stage(const Batch& next) {
  if constexpr (kHasCuda) {
    if (gpu_ == nullptr) return;
    gpu_->stage(next);
    staged_ = true;
  }
}

void Trainer::step_on_gpu(const Batch& batch, const std::function<void()>& meanwhile) {
  if constexpr (kHasCuda) {
    if (!std::exchange(staged_, false)) gpu_->stage(batch);
    gpu_->launch(labels_, identities_, last_.rate);
    if (meanwhile) meanwhile();
    const GpuStep::Outcome outcome = [&] {
      try {
        return gpu_->finish();
      } catch (const InputError& error) {
        diverged(error.what());
      }
    }();
    last_.loss = outcome.loss;
    last_.valid_queries = outcome.valid_queries;
    last_.gradient_norm = outcome.gradient_norm;
    last_.updated = outcome.updated;
    if (outcome.updated && std::isfinite(outcome.loss)) return;
    if (!outcome.updated && !outcome.hopeless) return;
    if (!std::isfinite(outcome.loss)) diverged(fmt::format("the loss is {}", outcome.loss));
    diverged(
        fmt::format("the gradient's norm is {} (loss {:g})", outcome.gradient_norm, outcome.loss));
  }
}

void Trainer::step_on_cpu() {
  StepResult& result = last_;
  chunked_->embed();
  gather();
  LossInput<float> input;
  input.rows = options_.batch;
  input.dim = options_.model.dim;
  input.embeddings = chunked_->embeddings();
  input.labels = labels_.data();
  input.identities = identities_.data();
  memory_.show(input);
  LossOutput<float> output;
  output.grad = chunked_->gradients();
  if (proxies_ >= 0) {
    input.classes = options_.classes;
    input.proxies = parameters_.value(proxies_);
    output.grad_proxies = parameters_.gradient(proxies_);
  }
  try {
    loss_->run(context_, input, output);
  } catch (const InputError& error) {
    diverged(error.what());
  }
  result.loss = output.loss;
  result.valid_queries = output.valid_queries;
  if (!std::isfinite(result.loss)) diverged(fmt::format("the loss is {}", result.loss));
  // backward() may overwrite them.
  memory_.push(chunked_->embeddings(), labels_, identities_);

  chunked_->backward([this] { program_.backward(); });
  // Those of the proxies, behind the network's, are everybody's own already.
  options_.processes->sum(
      parameters_.gradients().first(static_cast<std::size_t>(network_elements())));
  const auto count = static_cast<std::int64_t>(parameters_.flat_elements());
  result.gradient_norm = global_norm(context_, parameters_.gradients().data(), count);
  if (!std::isfinite(result.gradient_norm)) {
    diverged(
        fmt::format("the gradient's norm is {} (loss {:g})", result.gradient_norm, result.loss));
  }
  optimizer_->step(context_, {.rate = result.rate, .number = steps_ + 1},
                   parameters_.values().data(), parameters_.gradients().data());
}

void Trainer::pull() {
  if constexpr (kHasCuda) {
    if (gpu_ != nullptr) gpu_->pull();
  }
}

void Trainer::push() {
  if constexpr (kHasCuda) {
    if (gpu_ != nullptr) gpu_->push();
  }
}

LossScaleState Trainer::loss_scale() const {
  if constexpr (kHasCuda) {
    if (gpu_ != nullptr && options_.precision == Precision::kFp16) return gpu_->scale();
  }
  return {};
}

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
  return true;
}

void Trainer::save(CheckpointWriter& writer) const {
  save_parameters(parameters_, writer);
  save_optimizer(*optimizer_, parameters_, writer);
  memory_.save(writer);
}

bool Trainer::load(const Checkpoint& checkpoint, bool same_data) {
  load_parameters(checkpoint, parameters_);
  load_loss_parameters(checkpoint, parameters_);
  load_optimizer(checkpoint, parameters_, *optimizer_);
  steps_ = checkpoint.run().step;
  push();
  if constexpr (kHasCuda) {
    if (gpu_ != nullptr) gpu_->set_scale(checkpoint.run().loss_scale, steps_);
  }
  return same_data ? memory_.load(checkpoint) : options_.memory == 0;
}

std::int64_t Trainer::network_parameters() const {
  return parameters_.trainable_elements() -
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
    fill(c);
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      nodes[n]->forward();
      // Now: a later layer may take the place.
      LayerActivations& layer = layers[n];
      layer.name = nodes[n]->name();
      for (const float value : program_.read(program_.output_of(static_cast<int>(n)))) {
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

std::vector<std::pair<std::string, std::size_t>> Trainer::memory() const {
  const std::size_t flat = parameters_.flat_elements() * sizeof(float);
  if constexpr (kHasCuda) {
    if (gpu_ != nullptr) {
      std::vector<std::pair<std::string, std::size_t>> groups = {
          {"parameters", flat},
          {"gradients", flat},
          {"activations and their gradients", program_.memory().arena_bytes},
          {"workspace", program_.memory().workspace_bytes},
          {"memory columns", memory_.bytes()}};
      for (auto& group : gpu_->memory()) groups.push_back(std::move(group));
      return groups;
    }
  }
  return {{"parameters", flat},
          {"gradients", flat},
          {"optimizer", optimizer_->state_bytes()},
          {"activations and their gradients", program_.memory().arena_bytes},
          {"workspace", program_.memory().workspace_bytes},
          {"the batch from its parts", chunked_->bytes()},
          {"memory columns", memory_.bytes()},
          {"loss", static_cast<std::size_t>(loss_->bytes())}};
}

}  // namespace rk
