#include "training/cuda/gpu_step.h"

#include "engine/base/error.h"
#include "engine/base/note.h"
#include "kernels/blocks/elementwise_block.h"
#include "kernels/launch.h"
#include "training/trainer.h"

#include <cmath>

namespace rk {
namespace {

// What fp16 starts with: small enough for any loss here, found again within a few steps if not.
constexpr float kFirstScale = 65536.0F;
// Updates left out in a row, with the scale at its smallest, until the run is given up.
constexpr std::int64_t kMostSkipped = 20;
// Gradients go to the other processes in pieces of about this size, while backward goes on.
constexpr std::int64_t kBucket = (std::int64_t{25} << 20) / sizeof(float);

template <class T> Memory copy_of(const Context& context, const std::vector<T>& values) {
  Memory memory = context.allocate(values.size() * sizeof(T));
  if (!values.empty()) memory.upload(values.data(), memory.bytes());
  return memory;
}

Memory floats(const Context& context, std::int64_t count) {
  return context.allocate(static_cast<std::size_t>(count) * sizeof(float));
}

}  // namespace

GpuStep::GpuStep(const StepParts& parts)
    : parts_(parts),
      group_(make_device_group(parts.context.cuda(), parts.processes)),
      loss_(make_loss<float>(parts.options.loss)),
      input_(parts.program, parts.input, parts.table.levels(), parts.batch.share()),
      captures_(parts.options.graph) {
  const Context& context = parts_.context;
  const TrainerOptions& options = parts_.options;
  const std::int64_t dim = options.model.dim;
  const auto flat = static_cast<std::int64_t>(parts_.parameters.flat_elements());
  if (group_->size() > 1) {
    share_factor_ = copy_of(context, std::vector{1.0F / static_cast<float>(group_->size())});
  }
  if (parts_.memory.capacity() > 0) kept_ = floats(context, options.batch * dim);
  loss_->plan(context, {.rows = options.batch,
                        .memory = parts_.memory.capacity(),
                        .dim = dim,
                        .classes = parts_.proxies >= 0 ? options.classes : 0});
  step_ = context.allocate(sizeof(DeviceStep));
  squares_ = context.allocate(sizeof(double) *
                              static_cast<std::size_t>(SquareSums{.count = flat}.blocks()));
  const std::vector<OptimizerGroup>& groups = parts_.optimizer.groups();
  groups_ = copy_of(context, groups);
  group_count_ = static_cast<int>(groups.size());
  host_step_ = PinnedBuffer(sizeof(DeviceStep));
  host_rate_ = PinnedBuffer(sizeof(double));
  set_scale({}, 0);
  push();
}

GpuStep::~GpuStep() = default;

void GpuStep::stage(const Batch& batch) { input_.stage(batch.pixels); }

void GpuStep::launch(std::span<const std::int64_t> labels, std::span<const std::int64_t> identities,
                     double rate) {
  const CudaContext& cuda = parts_.context.cuda();
  LossInput<float> batch;
  batch.rows = parts_.options.batch;
  batch.dim = parts_.options.model.dim;
  batch.labels = labels.data();
  batch.identities = identities.data();
  parts_.memory.show(batch);
  if (parts_.proxies >= 0) batch.classes = parts_.options.classes;
  loss_->prepare(parts_.context, batch);
  *host_rate_.as<double>() = rate;
  static_assert(offsetof(DeviceStep, rate) == 0);
  cuda.upload(step_.data(), host_rate_.as<double>(), sizeof(double));
  input_.take();

  // A step of new sizes loads kernels, which must not happen in a capture: while the memory fills,
  // the loss's products grow with it.
  if (ran_with_ != parts_.memory.rows()) {
    graph_.reset();
  } else if (graph_ == nullptr && captures_) {
    capture();
  }
  if (graph_ != nullptr) {
    graph_->launch();
  } else {
    enqueue();
    ran_with_ = parts_.memory.rows();
  }
  for (std::int64_t c = 0; c < parts_.batch.chunks(); ++c) parts_.program.count_forward();
  parts_.memory.push(kept_.as<float>(), labels, identities);
}

// Replayed or not, a step computes the same.
void GpuStep::capture() {
  try {
    graph_ = std::make_unique<CudaGraph>(parts_.context.cuda(), [this] { enqueue(); });
  } catch (const DeviceError& error) {
    captures_ = false;
    note(
        fmt::format("the step cannot be captured: {}; its kernels are started one by one, as with "
                    "--graph off",
                    error.what()));
  }
}

GpuStep::Outcome GpuStep::finish() {
  // Not part of what is captured: see PinnedBuffer.
  parts_.context.cuda().download(host_step_.as<DeviceStep>(), step_.data(), sizeof(DeviceStep));
  const LossValue output = loss_->result(parts_.context);  // waits for all of the step
  const DeviceStep& step = *host_step_.as<DeviceStep>();
  return {.loss = output.loss,
          .valid_queries = output.valid_queries,
          .gradient_norm = step.norm,
          .updated = step.finite,
          .hopeless = !step.finite && (!step.dynamic_scale || step.skipped >= kMostSkipped ||
                                       !std::isfinite(output.loss))};
}

void GpuStep::enqueue() {
  const CudaContext& cuda = parts_.context.cuda();
  const TrainerOptions& options = parts_.options;
  const std::int64_t all = options.batch * options.model.dim;
  ChunkedNetwork& network = parts_.network;
  network.embed();
  gather();
  if (kept_.bytes() > 0) cuda.copy(kept_.data(), network.embeddings(), kept_.bytes());

  LossInput<float> input;
  input.rows = options.batch;
  input.dim = options.model.dim;
  input.embeddings = network.embeddings();
  parts_.memory.show(input);
  LossGradients<float> output{.grad = network.gradients()};
  if (parts_.proxies >= 0) {
    input.classes = options.classes;
    input.proxies = parts_.parameters.device_value(parts_.proxies);
    output.grad_proxies = parts_.parameters.device_gradient(parts_.proxies);
  }
  loss_->launch(parts_.context, input, output);
  const float* scale = &reinterpret_cast<const DeviceStep*>(step_.data())->loss_scale;
  rk::launch(Scale{.count = all, .factor = scale, .values = output.grad}, cuda.stream());
  if (parts_.proxies >= 0) {
    rk::launch(Scale{.count = parts_.parameters.entry(parts_.proxies).elements(),
                     .factor = scale,
                     .values = output.grad_proxies},
               cuda.stream());
  }
  backward();
  update();
}

void GpuStep::gather() {
  if (group_->size() == 1) return;
  const std::span<float> own = parts_.network.share();
  group_->gather(own.data(), parts_.network.embeddings(), std::ssize(own));
  if (parts_.options.batchnorm != BatchNormMode::kBatch) return;
  // Their mean over the processes.
  float* statistics = parts_.parameters.device_statistics();
  const auto values = static_cast<std::int64_t>(parts_.parameters.statistics().size());
  group_->begin_sum(statistics, values);
  group_->finish_sums();
  rk::launch(Scale{.count = values, .factor = share_factor_.as<float>(), .values = statistics},
             parts_.context.cuda().stream());
}

// Gradients that chunks add up go to the other processes when the last chunk is added.
void GpuStep::backward() {
  if (parts_.batch.chunks() == 1) {
    parts_.network.backward([this] { sum_while_going_back(); });
    return;
  }
  parts_.network.backward([this] { parts_.program.backward(); });
  group_->begin_sum(parts_.parameters.device_gradients(), parts_.network_elements);
  group_->finish_sums();
}

// The last layers' gradients, which lie at the end, are complete first.
void GpuStep::sum_while_going_back() {
  Program& program = parts_.program;
  float* gradients = parts_.parameters.device_gradients();
  std::int64_t end = parts_.network_elements;
  for (int node = static_cast<int>(program.nodes().size()) - 1; node >= 0; --node) {
    program.backward(node);
    const std::int64_t begin = program.parameters_begin(node);
    if (node > 0 && end - begin < kBucket) continue;
    if (end > begin) group_->begin_sum(gradients + begin, end - begin);
    end = begin;
  }
  group_->finish_sums();
}

void GpuStep::update() {
  const CudaContext& cuda = parts_.context.cuda();
  const auto flat = static_cast<std::int64_t>(parts_.parameters.flat_elements());
  auto* step = reinterpret_cast<DeviceStep*>(step_.data());
  const OptimizerParams& params = parts_.optimizer.params();
  const SquareSums squares{.count = flat,
                           .gradients = parts_.parameters.device_gradients(),
                           .partial = squares_.as<double>()};
  rk::launch(squares, cuda.stream());
  rk::launch(FinishNorm{.params = params,
                        .partials = squares.blocks(),
                        .partial = squares_.as<double>(),
                        .step = step},
             cuda.stream());
  rk::launch(OptimizerStep{.params = params,
                           .step = step,
                           .groups = groups_.as<OptimizerGroup>(),
                           .group_count = group_count_,
                           .count = flat,
                           .gradients = parts_.parameters.device_gradients(),
                           .parameters = parts_.parameters.device_values(),
                           .first = first_.as<float>(),
                           .second = second_.as<float>()},
             cuda.stream());
}

void GpuStep::pull() {
  parts_.parameters.download();
  const auto states = parts_.optimizer.states();
  for (std::size_t s = 0; s < states.size(); ++s) {
    const Memory& memory = s == 0 ? first_ : second_;
    memory.download(states[s].values, memory.bytes());
  }
  DeviceStep step;
  step_.download(&step, sizeof(step));
  scale_ = {.updates = step.number, .scale = step.loss_scale, .good_steps = step.good_steps};
}

void GpuStep::push() {
  parts_.parameters.upload();
  const auto states = parts_.optimizer.states();
  for (std::size_t s = 0; s < states.size(); ++s) {
    Memory& memory = s == 0 ? first_ : second_;
    if (memory.bytes() == 0) memory = floats(parts_.context, states[s].count);
    memory.upload(states[s].values, memory.bytes());
  }
}

// A file without a scale is one of a run that had none: every step of it was an update.
void GpuStep::set_scale(const LossScaleState& scale, std::int64_t steps) {
  DeviceStep step;
  step.dynamic_scale = parts_.options.precision == Precision::kFp16;
  step.loss_scale = step.dynamic_scale ? kFirstScale : 1.0F;
  step.number = steps;
  if (scale.scale > 0) {
    step.number = scale.updates;
    if (step.dynamic_scale) step.loss_scale = static_cast<float>(scale.scale);
    step.good_steps = scale.good_steps;
  }
  step_.upload(&step, sizeof(step));
}

std::vector<std::pair<std::string, std::size_t>> GpuStep::memory() const {
  return {{"optimizer", first_.bytes() + second_.bytes()},
          {"the batch's pictures", input_.bytes()},
          {"the batch from its parts", parts_.network.bytes() + kept_.bytes()},
          {"loss", static_cast<std::size_t>(loss_->bytes())}};
}

}  // namespace rk
