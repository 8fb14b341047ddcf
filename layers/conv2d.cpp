#include "layers/conv2d.h"

#include "engine/base/error.h"
#include "engine/base/integers.h"
#include "engine/tape/layout.h"
#include "layers/gpu/nodes.h"
#include "layers/onednn/convolution.h"
#include "layers/onednn/convolution_block.h"

#include <cmath>

namespace rk {
namespace {

// The first layer reads at most this many channels, stored as separate planes.
constexpr std::int64_t kStemChannels = 4;

class Conv2dNode : public ConvolutionNode {
 public:
  Conv2dNode(const std::string& name, Program& program, const ConvolutionGeometry& geometry)
      : ConvolutionNode(name, program, name, geometry),
        convolution_(program.context(), {.backward = program.options().gradients}) {}

  void plan(const std::vector<EdgeUse>& uses) override { convolution_.plan(geometry(), uses[0]); }
  void carve(Carver& /*saved*/, Carver& workspace) override { convolution_.carve(workspace); }

  void bind(const NodeMemory& memory) override {
    const float* w = parameters_.value(weight_);
    const auto* x = memory.inputs[0].as<float>();
    convolution_.bind_forward(x, w, nullptr, nullptr, memory.output.as<float>());
    const auto* dy = memory.output_gradient.as<float>();
    if (dy == nullptr) return;
    convolution_.bind_backward(x, dy, w, parameters_.gradient(weight_),
                               memory.input_gradients[0].as<float>());
  }

  void forward() override { convolution_.forward(); }
  void backward() override {
    convolution_.backward_weights();
    convolution_.backward_data();
  }
  void forward_floor() override { convolution_.forward_floor(); }
  void backward_floor() override { convolution_.backward_floor(); }

 private:
  OneDnnConvolution convolution_;
};

}  // namespace

ConvolutionGeometry convolution_geometry(const Program& program, TensorId x,
                                         const std::string& name, const Conv2dOptions& options) {
  const Shape& in = program.image_shape(x);
  expect_image(in, name);
  std::array<std::int64_t, 2> out{};
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const std::int64_t padded = in[static_cast<int>(axis) + 1] + 2 * options.padding[axis];
    expect(padded >= options.kernel[axis], "[{}] expected an image of at least {} pixels, got {}",
           name, options.kernel[axis] - 2 * options.padding[axis], in.text());
    out[axis] = (padded - options.kernel[axis]) / options.stride[axis] + 1;
  }

  ConvolutionGeometry g;
  g.options = options;
  g.x = program.shape(x);
  g.y = Shape{in[0], out[0], out[1], options.out_channels};
  g.weight = Shape{options.out_channels, options.in_channels > 0 ? options.in_channels : in[3],
                   options.kernel[0], options.kernel[1]};
  if (const SpaceToDepth* cells = program.cells(x)) {
    expect(options.stride[0] == cells->side && options.stride[1] == cells->side &&
               options.padding == cells->padding,
           "[{}] expected the stride and padding that its input lies for", name);
    g.cell = cells->side;
    g.options.stride = {1, 1};
    g.options.padding = {0, 0};
    for (std::int64_t& taps : g.options.kernel) taps = divide_up(taps, g.cell);
  }
  return g;
}

ConvolutionNode::ConvolutionNode(std::string name, Program& program, const std::string& convolution,
                                 const ConvolutionGeometry& geometry)
    : Node(std::move(name)),
      context_(program.context()),
      parameters_(program.parameters()),
      on_gpu_(program.on_gpu()),
      geometry_(geometry) {
  const Shape& w = geometry.weight;
  const auto fan_out = static_cast<double>(w[0] * w[2] * w[3]);
  weight_ = parameters_.declare(convolution + ".weight", w,
                                {Initial::Kind::kNormal, std::sqrt(2.0 / fan_out)});
}

// If only one of input and output divides into whole blocks, the convolution is still computed in
// blocks, and the other side is stored as NHWC.
ConvolutionGeometry ConvolutionNode::in_blocks(std::int64_t block, std::int64_t x_block) const {
  ConvolutionGeometry g = geometry_;
  const bool divides = block > 0 && g.y[3] % block == 0;
  const bool x_in_blocks = block > 0 && x_block == block;
  g.x_block = x_block;
  g.y_block = divides ? block : g.y[3];
  g.block = 0;
  g.order = {};
  if (divides && x_in_blocks) {
    g.order = {WeightOrder::Kind::kBlocked, block};
  } else if (divides && g.x_block == 1 && g.x[3] <= kStemChannels) {
    g.order = {WeightOrder::Kind::kStem, block};
  } else if (divides || x_in_blocks) {
    g.block = block;
  }
  return g;
}

// On the CPU, channel blocks if this processor's direct convolutions support them, else NHWC.
void ConvolutionNode::choose_layouts(ChannelBlocks& blocks) {
  ConvolutionGeometry& g = geometry_;
  if (on_gpu_) {
    g = in_blocks(0, blocks.inputs[0]);
    g.order = {WeightOrder::Kind::kChannelsLast, 0};
  } else {
    g = in_blocks(convolution_block(), blocks.inputs[0]);
    const ConvolutionGeometry plain = in_blocks(0, g.x[3]);
    // A residual stored as NHWC cannot be added to an output that is computed in blocks.
    const bool residual_apart = blocks.inputs.size() > 1 && g.block > 0 && g.y_block != g.block;
    if (residual_apart || (!OneDnnConvolution::has_own_code(context_, g) &&
                           OneDnnConvolution::has_own_code(context_, plain))) {
      g = plain;
    }
  }
  parameters_.store_as(weight_, g.order);
  blocks.inputs[0] = g.x_block;
  blocks.output = g.y_block;
  if (blocks.inputs.size() > 1) blocks.inputs[1] = g.y_block;  // the residual
}

TensorId conv2d(Program& program, TensorId x, const std::string& name,
                const Conv2dOptions& options) {
  if (program.on_gpu()) gpu::lay_out_images(program, x, name, options);
  const ConvolutionGeometry geometry = convolution_geometry(program, x, name, options);
  NodeInput input{.tensor = x, .read_in_backward = true};
  const NodeOutput output{.name = name, .shape = geometry.y, .dtype = program.dtype(x)};
  if (program.on_gpu()) {
    gpu::allow_gradient_forms(program, geometry, input);
    return program.append(gpu::conv2d_node(name, program, geometry), {input}, output);
  }
  auto node = std::make_unique<Conv2dNode>(name, program, geometry);
  return program.append(std::move(node), {input}, output);
}

}  // namespace rk
