#include "layers/conv_bn.h"

#include "engine/base/error.h"
#include "engine/base/parallel.h"
#include "engine/tape/layout.h"
#include "kernels/blocks/batchnorm_channel.h"
#include "kernels/cpu/batchnorm.h"
#include "kernels/cpu/elementwise.h"
#include "layers/gpu/nodes.h"
#include "layers/onednn/convolution.h"

#include <algorithm>

namespace rk {
namespace {

namespace bn = batchnorm_cpu;

class FoldedConvNode : public ConvolutionNode {
 public:
  FoldedConvNode(const ConvBnNames& names, Program& program, const ConvolutionGeometry& geometry,
                 const BatchNormOptions& options)
      : ConvolutionNode(names.convolution + " and " + names.batchnorm, program, names.convolution,
                        geometry),
        threads_(program.context().threads()),
        options_(options),
        preserve_(program.options().keep_all),
        gradients_(program.options().gradients),
        tensors_(declare_batchnorm(program, names.batchnorm, geometry.y[3])),
        convolution_(program.context(), {.bias = true,
                                         .residual = options.residual >= 0,
                                         .relu = options.relu,
                                         .backward = program.options().gradients}) {}

  std::string_view kind() const override { return "convolution with folded batch norm"; }
  void plan(const std::vector<EdgeUse>& uses) override {
    layout_ = image_layout(geometry().y, geometry().y_block);
    convolution_.plan(geometry(), uses[0]);
  }

  void carve(Carver& saved, Carver& workspace) override {
    const std::int64_t channels = geometry().y[3];
    folded_ = saved.take<float>(weight_elements());
    bias_ = saved.take<float>(channels);
    scale_ = saved.take<float>(channels);
    inv_std_ = saved.take<float>(channels);
    if (gradients_) {
      // Needed if dy must not be overwritten.
      gradient_ = options_.relu && preserve_ ? workspace.take<float>(layout_.elements()) : nullptr;
      partial_ = workspace.take<double>(bn::partial_sums(layout_));
      totals_ = workspace.take<double>(2 * channels);
      zeros_ = workspace.take<float>(channels);
      ones_ = workspace.take<float>(channels);
    }
    convolution_.carve(workspace);
  }

  void bind(const NodeMemory& memory) override {
    Node::bind(memory);
    const auto* x = memory.inputs[0].as<float>();
    const float* residual = options_.residual >= 0 ? memory.inputs[1].as<float>() : nullptr;
    convolution_.bind_forward(x, folded_, bias_, residual, memory.output.as<float>());
    if (memory.output_gradient.as<float>() == nullptr) return;
    if (gradient_ == nullptr) gradient_ = memory.output_gradient.as<float>();
    convolution_.bind_backward(x, gradient_, folded_, parameters_.gradient(weight_),
                               memory.input_gradients[0].as<float>());
  }

  void forward() override {
    const float* gamma = parameters_.value(tensors_.gamma);
    const float* beta = parameters_.value(tensors_.beta);
    const float* mean = parameters_.buffer(tensors_.mean);
    const float* variance = parameters_.buffer(tensors_.variance);
    for (std::int64_t c = 0; c < geometry().y[3]; ++c) {
      const double inv_std = inverse_deviation(variance[c], options_.epsilon);
      const double scale = static_cast<double>(gamma[c]) * inv_std;
      inv_std_[c] = static_cast<float>(inv_std);
      scale_[c] = static_cast<float>(scale);
      bias_[c] = static_cast<float>(static_cast<double>(beta[c]) - scale * mean[c]);
    }
    const float* w = parameters_.value(weight_);
    for_each_lane_row([&](std::int64_t offset, std::int64_t channel, std::int64_t lanes) {
      for (std::int64_t l = 0; l < lanes; ++l) {
        folded_[offset + l] = w[offset + l] * scale_[channel + l];
      }
    });
    convolution_.forward();
  }

  void backward() override {
    const std::int64_t channels = geometry().y[3];
    // One pass computes ReLU's mask, the masked gradient's sum over the batch, and the residual's
    // gradient. With mean 0, scale 1 and shift 0, the kernel's "(x - mean) scale + shift > 0" tests
    // y > 0. (The constants are set each time, because other nodes use the workspace too.)
    std::fill_n(zeros_, channels, 0.0F);
    std::fill_n(ones_, channels, 1.0F);
    const auto* dy = memory_.output_gradient.as<float>();
    const bn::Backward in{options_.relu ? memory_.output.as<float>() : dy,
                          dy,
                          options_.relu ? ReluMask::kFromInput : ReluMask::kNone,
                          nullptr,
                          {zeros_, ones_, zeros_}};
    bn::gradient_sums(threads_, layout_, in, options_.relu ? gradient_ : nullptr, false, partial_);
    bn::finish_gradient_sums(layout_, partial_, totals_, totals_ + channels);
    if (options_.residual >= 0) {
      auto* d_residual = memory_.input_gradients[1].as<float>();
      if (d_residual != nullptr) {
        elementwise_cpu::copy(threads_, layout_.elements(), gradient_, d_residual,
                              memory_.uses[1].accumulate);
      }
    }
    convolution_.backward_weights();
    convolution_.backward_data();
    finish_parameter_gradients();
  }

  void forward_floor() override { convolution_.forward_floor(); }
  void backward_floor() override { convolution_.backward_floor(); }

 private:
  std::int64_t weight_elements() const { return geometry().weight.elements(); }
  // Adjacent output channels in the weight's stored order.
  std::int64_t weight_lanes() const {
    return geometry().order.kind == WeightOrder::Kind::kPlain ? 1 : geometry().order.block;
  }

  // f(offset, first channel, lanes) for every run of weights with consecutive output channels.
  template <class F> void for_each_lane_row(F&& f) {
    const std::int64_t lanes = weight_lanes();
    const std::int64_t blocks = geometry().y[3] / lanes;
    const std::int64_t rows = weight_elements() / geometry().y[3];
    parallel_for(threads_, blocks, [&](std::int64_t block, int) {
      for (std::int64_t r = 0; r < rows; ++r) f((block * rows + r) * lanes, block * lanes, lanes);
    });
  }

  void finish_parameter_gradients() {
    const std::int64_t channels = geometry().y[3];
    float* dw = parameters_.gradient(weight_);
    const float* w = parameters_.value(weight_);
    double* dots = totals_ + channels;
    std::fill_n(dots, channels, 0.0);
    for_each_lane_row([&](std::int64_t offset, std::int64_t channel, std::int64_t lanes) {
      for (std::int64_t l = 0; l < lanes; ++l) {
        dots[channel + l] +=
            static_cast<double>(dw[offset + l]) * static_cast<double>(w[offset + l]);
        dw[offset + l] *= scale_[channel + l];
      }
    });
    const float* mean = parameters_.buffer(tensors_.mean);
    float* d_gamma = parameters_.gradient(tensors_.gamma);
    float* d_beta = parameters_.gradient(tensors_.beta);
    for (std::int64_t c = 0; c < channels; ++c) {
      d_beta[c] = static_cast<float>(totals_[c]);
      d_gamma[c] = static_cast<float>(static_cast<double>(inv_std_[c]) *
                                      (dots[c] - static_cast<double>(mean[c]) * totals_[c]));
    }
  }

  int threads_;
  ImageLayout layout_;
  BatchNormOptions options_;
  bool preserve_;
  bool gradients_;
  BatchNormTensors tensors_;
  OneDnnConvolution convolution_;

  float* folded_ = nullptr;
  float* bias_ = nullptr;
  float* scale_ = nullptr;
  float* inv_std_ = nullptr;
  float* gradient_ = nullptr;
  double* partial_ = nullptr;
  double* totals_ = nullptr;
  float* zeros_ = nullptr;
  float* ones_ = nullptr;
};

}  // namespace

TensorId conv_bn(Program& program, TensorId x, const ConvBnNames& names,
                 const Conv2dOptions& convolution, const BatchNormOptions& options) {
  if (options.mode == BatchNormMode::kBatch) {
    return batchnorm(program, conv2d(program, x, names.convolution, convolution), names.batchnorm,
                     options, names.output);
  }
  if (program.on_gpu()) gpu::lay_out_images(program, x, names.convolution, convolution);
  const ConvolutionGeometry geometry =
      convolution_geometry(program, x, names.convolution, convolution);
  std::vector<NodeInput> inputs = {{.tensor = x, .read_in_backward = true}};
  if (options.residual >= 0) {
    expect(program.shape(options.residual) == geometry.y,
           "[{}] expected a residual of shape {}, got {}", names.convolution, geometry.y.text(),
           program.shape(options.residual).text());
    // Backward writes the residual's gradient before that of x.
    expect(options.residual != x, "[{}] expected another tensor as the residual than x",
           names.convolution);
    inputs.push_back({.tensor = options.residual, .gradient_in_place = true});
  }
  const Program::Options& recorded = program.options();
  const NodeOutput output{
      .name = names.output.empty() ? names.batchnorm : names.output,
      .shape = geometry.y,
      .read_in_backward = options.relu,
      .dtype = program.dtype(x),
      // A residual and its gradient would have other row strides than y.
      .may_be_strided = program.on_gpu() && options.residual < 0 &&
                        gpu::writes_rows_apart(recorded.precision, recorded.gradients),
      .takes_masked_gradient = options.relu && program.on_gpu()};
  if (program.on_gpu()) {
    gpu::allow_gradient_forms(program, geometry, inputs[0]);
    return program.append(gpu::folded_conv_node(names, program, geometry, options), inputs, output);
  }
  auto node = std::make_unique<FoldedConvNode>(names, program, geometry, options);
  return program.append(std::move(node), inputs, output);
}

}  // namespace rk
