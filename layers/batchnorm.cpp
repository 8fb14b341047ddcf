#include "layers/batchnorm.h"

#include "engine/base/error.h"
#include "engine/tape/layout.h"
#include "kernels/blocks/batchnorm_channel.h"
#include "kernels/cpu/batchnorm.h"
#include "layers/gpu/nodes.h"

#include <algorithm>

namespace rk {
namespace {

namespace bn = batchnorm_cpu;

class BatchNormNode : public Node {
 public:
  BatchNormNode(const std::string& name, Program& program, const Shape& shape,
                const BatchNormOptions& options)
      : Node(name),
        threads_(program.context().threads()),
        shape_(shape),
        options_(options),
        gradients_(program.options().gradients),
        parameters_(program.parameters()),
        tensors_(declare_batchnorm(program, name, shape[3])) {}

  std::string_view kind() const override { return "batch norm"; }
  void choose_layouts(ChannelBlocks& blocks) override {
    layout_ = image_layout(shape_, blocks.inputs[0]);
    std::ranges::fill(blocks.inputs, layout_.block);
  }

  void carve(Carver& saved, Carver& workspace) override {
    const std::int64_t channels = layout_.channels();
    mean_ = saved.take<float>(channels);
    inv_std_ = saved.take<float>(channels);
    scale_ = saved.take<float>(channels);
    if (keeps_signs()) {
      signs_ = saved.take<std::byte>(static_cast<std::int64_t>(bn::sign_bytes(layout_)));
    }
    partial_ = workspace.take<double>(bn::partial_sums(layout_));
    totals_ = workspace.take<double>(2 * channels);
    variance_ = workspace.take<float>(channels);
    factors_ = workspace.take<float>(3 * channels);
  }

  void forward() override {
    const auto* x = memory_.inputs[0].as<float>();
    const std::int64_t channels = layout_.channels();
    float* running_mean = parameters_.buffer(tensors_.mean);
    float* running_variance = parameters_.buffer(tensors_.variance);
    const float* gamma = parameters_.value(tensors_.gamma);
    const float* variance = running_variance;
    if (options_.mode == BatchNormMode::kBatch) {
      bn::plane_statistics(threads_, layout_, x, partial_);
      bn::finish_statistics(layout_, partial_, mean_, variance_);
      variance = variance_;
      update_running(running_mean, running_variance);
    } else {
      std::copy_n(running_mean, channels, mean_);
    }
    for (std::int64_t c = 0; c < channels; ++c) {
      const double inv_std = inverse_deviation(variance[c], options_.epsilon);
      inv_std_[c] = static_cast<float>(inv_std);
      scale_[c] = static_cast<float>(static_cast<double>(gamma[c]) * inv_std);
    }
    bn::normalise(threads_, layout_, x, channel_factors(), residual(), options_.relu, signs_,
                  memory_.output.as<float>(), layout_.gap(memory_.output.image_stride));
  }

  void backward() override {
    const std::int64_t channels = layout_.channels();
    bn::Backward in{memory_.inputs[0].as<float>(),
                    memory_.output_gradient.as<float>(),
                    ReluMask::kNone,
                    signs_,
                    channel_factors(),
                    layout_.gap(memory_.output_gradient.image_stride)};
    if (options_.relu) in.mask = keeps_signs() ? ReluMask::kFromSigns : ReluMask::kFromInput;
    const bool has_residual = options_.residual >= 0;
    auto* d_residual = has_residual ? memory_.input_gradients[1].as<float>() : nullptr;
    bn::gradient_sums(threads_, layout_, in, d_residual, has_residual && memory_.uses[1].accumulate,
                      partial_);
    bn::finish_gradient_sums(layout_, partial_, totals_, totals_ + channels);

    float* d_gamma = parameters_.gradient(tensors_.gamma);
    float* d_beta = parameters_.gradient(tensors_.beta);
    const bool batch = options_.mode == BatchNormMode::kBatch;
    const double count = static_cast<double>(layout_.batch * layout_.pixels());
    for (std::int64_t c = 0; c < channels; ++c) {
      const BatchNormFactors of = batchnorm_factors(totals_[c], totals_[channels + c], inv_std_[c],
                                                    scale_[c], count, batch);
      d_gamma[c] = of.d_gamma;
      d_beta[c] = of.d_beta;
      factors_[c] = of.a;
      factors_[channels + c] = of.b;
      factors_[2 * channels + c] = of.c;
    }
    auto* dx = memory_.input_gradients[0].as<float>();
    if (dx == nullptr) return;
    bn::gradient_apply(threads_, layout_, in,
                       {factors_, factors_ + channels, factors_ + 2 * channels}, dx,
                       memory_.uses[0].accumulate);
  }

  void count_forward() override {
    if (options_.mode == BatchNormMode::kBatch) ++parameters_.counter(tensors_.count);
  }

 private:
  bool keeps_signs() const { return gradients_ && options_.relu && options_.residual >= 0; }
  const float* residual() const {
    return options_.residual >= 0 ? memory_.inputs[1].as<float>() : nullptr;
  }
  bn::Channels channel_factors() const { return {mean_, scale_, parameters_.value(tensors_.beta)}; }

  void update_running(float* running_mean, float* running_variance) {
    const RunningUpdate update{static_cast<double>(layout_.batch * layout_.pixels()),
                               options_.momentum};
    for (std::int64_t c = 0; c < layout_.channels(); ++c) {
      running_mean[c] = update.mean(running_mean[c], mean_[c]);
      running_variance[c] = update.variance(running_variance[c], variance_[c]);
    }
  }

  int threads_;
  Shape shape_;
  ImageLayout layout_;
  BatchNormOptions options_;
  bool gradients_;
  Parameters& parameters_;
  BatchNormTensors tensors_;
  float* mean_ = nullptr;
  float* inv_std_ = nullptr;
  float* scale_ = nullptr;
  void* signs_ = nullptr;
  double* partial_ = nullptr;
  double* totals_ = nullptr;
  float* variance_ = nullptr;  // the batch's
  float* factors_ = nullptr;
};

}  // namespace

BatchNormTensors declare_batchnorm(Program& program, const std::string& name,
                                   std::int64_t channels) {
  Parameters& p = program.parameters();
  return {p.declare(name + ".weight", {channels}, {Initial::Kind::kConstant, 1.0}),
          p.declare(name + ".bias", {channels}, {Initial::Kind::kConstant, 0.0}),
          p.declare_buffer(name + ".running_mean", channels, 0.0F),
          p.declare_buffer(name + ".running_var", channels, 1.0F),
          p.declare_counter(name + ".num_batches_tracked")};
}

TensorId batchnorm(Program& program, TensorId x, const std::string& name,
                   const BatchNormOptions& options, const std::string& output_name) {
  const Shape& shape = program.shape(x);
  expect_image(shape, name);
  if (options.residual >= 0) {
    expect(program.shape(options.residual) == shape,
           "[{}] expected a residual of the same shape {}, got {}", name, shape.text(),
           program.shape(options.residual).text());
    // Backward writes the residual's gradient before that of x.
    expect(options.residual != x, "[{}] expected another tensor as the residual than x", name);
  }
  // The residual's gradient is ReLU's mask times dy: if it is the first contribution, it takes dy's
  // place, and dx gets its own memory. Without a residual, dx takes dy's place.
  const bool with_residual = options.residual >= 0;
  std::vector<NodeInput> inputs = {
      {.tensor = x, .read_in_backward = true, .gradient_in_place = !with_residual}};
  if (with_residual) inputs.push_back({.tensor = options.residual, .gradient_in_place = true});
  const NodeOutput output{.name = output_name.empty() ? name : output_name,
                          .shape = shape,
                          .dtype = program.dtype(x),
                          .may_be_strided = !program.on_gpu()};
  if (program.on_gpu()) {
    auto node = gpu::batchnorm_node(name, program, x, options, inputs);
    return program.append(std::move(node), inputs, output);
  }
  auto node = std::make_unique<BatchNormNode>(name, program, shape, options);
  return program.append(std::move(node), inputs, output);
}

bool joins_batchnorms(const Program& program, BatchNormMode mode) {
  return program.on_gpu() && program.options().gradients && mode == BatchNormMode::kBatch;
}

TensorId joined_batchnorm(Program& program, TensorId x, const std::string& name, TensorId shortcut,
                          const std::string& shortcut_name, const BatchNormOptions& options,
                          const std::string& output_name) {
  const Shape& shape = program.shape(x);
  expect(joins_batchnorms(program, options.mode) && shape.rank() == 4 && x != shortcut &&
             shape == program.shape(shortcut),
         "[{}] expected two images of one shape on a GPU in training, got {} and {}", name,
         shape.text(), program.shape(shortcut).text());
  const std::vector<NodeInput> inputs = {
      {.tensor = x, .read_in_backward = true, .gradient_in_place = true},
      {.tensor = shortcut, .read_in_backward = true}};
  const NodeOutput output{.name = output_name, .shape = shape, .dtype = program.dtype(x)};
  return program.append(
      gpu::joined_batchnorm_node(program, x, name, shortcut, shortcut_name, options), inputs,
      output);
}

}  // namespace rk
