#include "training/train_step.h"

#include "kernels/blocks/elementwise_block.h"
#include "kernels/launch.h"

namespace rk {
namespace {

// The initial loss scale in fp16: small enough for any loss here, and corrected within a few steps
// if not.
constexpr float kFirstScale = 65536.0F;

// The network's part of the flat buffers: proxies come after the network's parameters.
std::int64_t network_elements(const Parameters& parameters, ParameterId proxies) {
  return proxies >= 0 ? parameters.entry(proxies).offset
                      : static_cast<std::int64_t>(parameters.flat_elements());
}

}  // namespace

TrainStep::TrainStep(const Context& context, const TrainerOptions& options, Program& program,
                     const Network& network, ParameterId proxies)
    : context_(context),
      options_(options),
      parameters_(program.parameters()),
      program_(program),
      proxies_(proxies),
      parts_{options.batch, options.chunk, options.processes},
      input_(program, network.input, float_table(options.model), parts_.share()),
      memory_(context, options.memory_batches, options.batch, options.model.dim),
      network_(program, network.embeddings, parts_, *options.processes,
               network_elements(parameters_, proxies), input_,
               options.batchnorm == BatchNormMode::kBatch),
      loss_(make_loss<float>(options.loss)),
      optimizer_(context, options.optimizer, optimizer_groups(parameters_, options.learning),
                 static_cast<std::int64_t>(parameters_.flat_elements())),
      work_(context, options.capture, [this] { compute(); },
            {.all_captured =
                 [&processes = *options.processes](bool captured) {
                   return processes.all_reduce_max(captured ? 0 : 1) == 0;
                 },
             .gave_up = [this] { network_.renew_group(); }}),
      ends_{Mark(context), Mark(context)} {
  loss_->allocate(context, {.rows = options.batch,
                            .memory = memory_.capacity(),
                            .dim = options.model.dim,
                            .classes = proxies >= 0 ? options.classes : 0});
  if (memory_.capacity() > 0) kept_ = context.allocate<float>(options.batch * options.model.dim);
  state_.allocate(context);
  set_scale({}, 0);
}

void TrainStep::begin(std::span<const std::int64_t> labels, std::span<const std::int64_t> image_ids,
                      double rate) {
  labels_ = labels;
  image_ids_ = image_ids;
  loss_->prepare(context_, loss_input());
  state_.send(context_, &StepState::rate, rate);
  input_.take();
  // While the memory fills, the sizes of the loss's products grow with it.
  work_.run(memory_.rows());
  for (std::int64_t c = 0; c < parts_.chunks(); ++c) program_.count_forward();
  if (kept_.bytes() > 0) memory_.push(kept_.as<float>(), labels, image_ids);
  state_.fetch(context_);
  loss_->fetch(context_);
  ends_.next().set();
}

LossInput<float> TrainStep::loss_input() const {
  LossInput<float> input;
  input.rows = options_.batch;
  input.dim = options_.model.dim;
  input.embeddings = network_.embeddings();
  input.labels = labels_.data();
  input.image_ids = image_ids_.data();
  memory_.show(input);
  if (proxies_ >= 0) {
    input.classes = options_.classes;
    input.proxies = parameters_.device_value(proxies_);
  }
  return input;
}

// A replayed step computes the same as one that is not.
void TrainStep::compute() {
  embed();
  if (kept_.bytes() > 0) context_.copy(kept_.data(), network_.embeddings(), kept_.bytes());
  value_and_gradient();
  backward();
  update();
}

void TrainStep::value_and_gradient() {
  LossGradients<float> output{.grad = network_.gradients()};
  if (proxies_ >= 0) output.grad_proxies = parameters_.device_gradient(proxies_);
  loss_->launch(context_, loss_input(), output);
  if (options_.precision != Precision::kFp16) return;
  const float* scale = &state_.device_ptr()->loss_scale;
  launch(
      context_,
      Scale{.count = options_.batch * options_.model.dim, .factor = scale, .values = output.grad});
  if (proxies_ < 0) return;
  launch(context_, Scale{.count = parameters_.entry(proxies_).elements(),
                         .factor = scale,
                         .values = output.grad_proxies});
}

void TrainStep::update() {
  optimizer_.step(context_, state_.device_ptr(), parameters_.device_values(),
                  parameters_.device_gradients(), loss_->device_ptr());
}

TrainStep::Outcome TrainStep::finish() {
  ends_.oldest().wait();
  const StepState& step = state_.take();
  const LossValue value = loss_->take();
  return {.loss = value.loss,
          .valid_queries = value.valid_queries,
          .gradient_norm = step.norm,
          .updated = step.finite,
          .hopeless = step.halted};
}

void TrainStep::recompute(std::span<const std::int64_t> labels,
                          std::span<const std::int64_t> image_ids) {
  labels_ = labels;
  image_ids_ = image_ids;
  loss_->prepare(context_, loss_input());
  input_.take_back();
  embed();
  value_and_gradient();
  backward();
}

LossScaleState TrainStep::scale() const {
  const StepState step = state_.get();
  return {.updates = step.number, .scale = step.loss_scale, .good_steps = step.good_steps};
}

// A checkpoint without a scale comes from a run without one, in which every step was an update.
void TrainStep::set_scale(const LossScaleState& scale, std::int64_t steps) {
  StepState step;
  step.dynamic_scale = options_.precision == Precision::kFp16;
  step.loss_scale = step.dynamic_scale ? kFirstScale : 1.0F;
  step.number = steps;
  if (scale.scale > 0) {
    step.number = scale.updates;
    if (step.dynamic_scale) step.loss_scale = static_cast<float>(scale.scale);
    step.good_steps = scale.good_steps;
  }
  state_.set(step);
}

std::vector<std::pair<std::string, std::size_t>> TrainStep::reserved() const {
  return {{"optimizer", optimizer_.state_bytes()},
          {"the batch's pictures", input_.bytes()},
          {"the batch from its parts", network_.bytes() + kept_.bytes()},
          {"memory columns", memory_.bytes()},
          {"loss", static_cast<std::size_t>(loss_->bytes())}};
}

}  // namespace rk
