#include "layers/conv2d.h"

#include "engine/base/error.h"
#include "engine/tape/layout.h"
#include "layers/gpu/nodes.h"
#include "layers/onednn/convolution.h"

#include <cmath>

namespace rk {
namespace {

// A first layer reads at most this many channels, pixel planes apart.
constexpr std::int64_t kStemChannels = 4;

class Conv2dNode : public ConvolutionNode {
 public:
  Conv2dNode(const std::string& name, Program& program, const ConvolutionGeometry& geometry,
             ParameterId weight)
      : ConvolutionNode(name, geometry),
        parameters_(program.parameters()),
        weight_(weight),
        convolution_(program.context(), geometry, {.backward = program.options().gradients}) {}

  NodeClaims plan(const std::vector<EdgeUse>& uses) override {
    return {0, convolution_.plan(uses[0])};
  }

  void bind(const NodeMemory& memory) override {
    const float* w = parameters_.value(weight_);
    const auto* x = memory.inputs[0].as<float>();
    convolution_.bind_forward(x, w, nullptr, nullptr, memory.output.as<float>(), memory.workspace);
    const auto* dy = memory.output_gradient.as<float>();
    if (dy == nullptr) return;
    convolution_.bind_backward(x, dy, w, parameters_.gradient(weight_),
                               memory.input_gradients[0].as<float>(), memory.workspace);
  }

  void forward() override { convolution_.forward(); }
  void backward() override {
    convolution_.backward_weights();
    convolution_.backward_data();
  }
  void forward_floor() override { convolution_.forward_floor(); }
  void backward_floor() override { convolution_.backward_floor(); }

 private:
  Parameters& parameters_;
  ParameterId weight_;
  OneDnnConvolution convolution_;
};

}  // namespace

ConvolutionGeometry convolution_geometry(const Program& program, TensorId x,
                                         const std::string& name, const Conv2dOptions& options) {
  const Shape& in = program.shape(x);
  expect(in.rank() == 4, "[{}] expected an image tensor (N, H, W, C), got {}", name, in.text());
  std::array<std::int64_t, 2> out{};
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const std::int64_t padded = in[static_cast<int>(axis) + 1] + 2 * options.padding[axis];
    expect(padded >= options.kernel[axis], "[{}] expected an image of at least {} pixels, got {}",
           name, options.kernel[axis] - 2 * options.padding[axis], in.text());
    out[axis] = (padded - options.kernel[axis]) / options.stride[axis] + 1;
  }

  ConvolutionGeometry g;
  g.options = options;
  g.x = in;
  g.y = Shape{in[0], out[0], out[1], options.out_channels};
  g.x_width = program.width(x);
  if (program.on_gpu()) {
    g.y_width = options.out_channels;
    g.order = {WeightOrder::Kind::kChannelsLast, 0};
    return g;
  }
  // Blocks of channels where the direct convolutions of this processor can run on them; with whole
  // blocks on one side alone they compute in blocks, too, and the other side is NHWC.
  const std::int64_t block = convolution_width();
  const bool divides = block > 0 && options.out_channels % block == 0;
  const bool in_blocks = block > 0 && g.x_width == block;
  g.y_width = divides ? block : options.out_channels;
  if (divides && in_blocks) {
    g.order = {WeightOrder::Kind::kBlocked, block};
  } else if (divides && g.x_width == 1 && in[3] <= kStemChannels) {
    g.order = {WeightOrder::Kind::kStem, block};
  } else if (divides || in_blocks) {
    g.block = block;
  }
  return g;
}

ParameterId declare_convolution_weight(Program& program, const std::string& name,
                                       const ConvolutionGeometry& geometry) {
  const auto& o = geometry.options;
  const auto fan_out = static_cast<double>(o.out_channels * o.kernel[0] * o.kernel[1]);
  return program.parameters().declare(name + ".weight", geometry.weight_shape(),
                                      {Initial::Kind::kNormal, std::sqrt(2.0 / fan_out)},
                                      ParameterGroup::kBackbone, geometry.order);
}

TensorId conv2d(Program& program, TensorId x, const std::string& name,
                const Conv2dOptions& options) {
  const ConvolutionGeometry geometry = convolution_geometry(program, x, name, options);
  const ParameterId weight = declare_convolution_weight(program, name, geometry);
  NodeInput input{.tensor = x, .read_in_backward = true};
  const NodeOutput output{
      .name = name, .shape = geometry.y, .width = geometry.y_width, .dtype = program.dtype(x)};
  if (program.on_gpu()) {
    gpu::allow_gradient_forms(program, geometry, input);
    return program.append(gpu::conv2d_node(name, program, geometry, weight), {input}, output);
  }
  auto node = std::make_unique<Conv2dNode>(name, program, geometry, weight);
  return program.append(std::move(node), {input}, output);
}

}  // namespace rk
