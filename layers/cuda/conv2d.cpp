#include "engine/device/cuda/context.h"
#include "kernels/blocks/weights_block.h"
#include "kernels/launch.h"
#include "layers/cuda/batchnorm.h"
#include "layers/cuda/convolution.h"
#include "layers/cuda/element.h"
#include "layers/cuda/nodes.h"
#include "layers/cuda/weights.h"

#include <type_traits>

namespace rk::gpu {
namespace {

// The output's channels are added up on the side where the plan table names an engine for that.
GraphKind forward_kind(const Program& program, const ConvolutionGeometry& geometry) {
  const Precision precision = program.options().precision;
  const GraphSpec wanted = graph_spec(geometry, precision, GraphKind::kConvolutionSums);
  const GraphKind kind = taken(wanted);
  const std::string text = wanted.text();
  const bool sums = program.options().gradients && kind == GraphKind::kConvolutionSums &&
                    !plans_of(program.context()).engine(text).empty();
  return sums ? kind : GraphKind::kConvolution;
}

// The weight is kept in float32 and cast to T, with the input channels that the images have, in
// front of every forward pass (gpu_weights.h); its gradient comes in T and is widened. Where
// nothing changes the graphs read and write the parameters themselves.
template <class T> class Conv2dNode final : public SummingConvolution, public UsesWeights<T> {
 public:
  Conv2dNode(const std::string& name, Program& program, const ConvolutionGeometry& geometry,
             ParameterId weight)
      : SummingConvolution(name, geometry),
        UsesWeights<T>(program),
        context_(program.context()),
        parameters_(program.parameters()),
        weight_(weight),
        gradients_(program.options().gradients),
        forward_kind_(forward_kind(program, geometry)),
        convolution_(program.context(), geometry, program.options().precision, forward_kind_,
                     program.options().gradients) {}

  std::string way() const override {
    return adds_up() ? "convolutions that add up their output by cuDNN" : "convolutions by cuDNN";
  }
  bool adds_up() const override { return forward_kind_ == GraphKind::kConvolutionSums; }
  Sums sums() const override { return {sum_, squares_}; }

  NodeClaims plan(const std::vector<EdgeUse>& uses) override {
    NodeClaims claims;
    Pieces saved;
    take_saved(saved);
    claims.saved_bytes = saved.used();
    claims.saved_from_start = casts();
    claims.workspace_bytes = own_workspace() + convolution_.plan(uses[0]);
    return claims;
  }

  void bind(const NodeMemory& memory) override {
    Pieces saved(memory.saved);
    take_saved(saved);
    if (casts()) {
      this->weights_->add(
          *this,
          {.shape = shape(), .weight = parameters_.device_value(weight_), .prepared = cast_});
    }
    const T* w = weight();
    Pieces pieces(memory.workspace);
    gradient_ = weight_gradient(pieces);
    convolution_.bind_forward({.x = memory.inputs[0].as<T>(),
                               .w = w,
                               .y = memory.output.as<T>(),
                               .sum = sum_,
                               .squares = squares_},
                              pieces.rest());
    if (!gradients_) return;
    convolution_.bind_backward(memory.inputs[0].as<T>(), memory.output_gradient.as<T>(), w,
                               gradient_, memory.input_gradients[0].as<T>(),
                               memory.addends[0].as<T>(), pieces.rest());
  }

  void forward() override {
    this->weights_->prepare(*this);
    convolution_.forward();
  }

  void backward() override {
    convolution_.backward_weights();
    if (casts()) {
      launch(WidenGradient<T>{.shape = shape(),
                              .gradient = gradient_,
                              .d_weight = parameters_.device_gradient(weight_)},
             context_.cuda().stream());
    }
    convolution_.backward_data();
  }

 private:
  FilterShape shape() const { return filter_shape(geometry()); }
  bool casts() const {
    return !std::is_same_v<T, float> || shape().inputs != shape().padded_inputs;
  }

  std::size_t own_workspace() const {
    Pieces pieces;
    if (casts() && gradients_) pieces.take<T>(shape().stored());
    return pieces.used();
  }
  void take_saved(Pieces& pieces) {
    if (casts()) cast_ = pieces.take<T>(shape().stored());
    if (!adds_up()) return;
    sum_ = pieces.take<float>(geometry().y[3]);
    squares_ = pieces.take<float>(geometry().y[3]);
  }
  const T* weight() const {
    if constexpr (std::is_same_v<T, float>) {
      if (!casts()) return parameters_.device_value(weight_);
    }
    return cast_;
  }
  T* weight_gradient(Pieces& pieces) const {
    if (!gradients_) return nullptr;
    if constexpr (std::is_same_v<T, float>) {
      if (!casts()) return parameters_.device_gradient(weight_);
    }
    return pieces.take<T>(shape().stored());
  }

  const Context& context_;
  Parameters& parameters_;
  ParameterId weight_;
  bool gradients_;
  GraphKind forward_kind_;
  Convolution<T> convolution_;
  T* cast_ = nullptr;
  float* sum_ = nullptr;
  float* squares_ = nullptr;
  T* gradient_ = nullptr;
};

}  // namespace

std::unique_ptr<Node> conv2d_node(const std::string& name, Program& program,
                                  const ConvolutionGeometry& geometry, ParameterId weight) {
  return with_image_type(program.options().precision, [&]<class T>() -> std::unique_ptr<Node> {
    return std::make_unique<Conv2dNode<T>>(name, program, geometry, weight);
  });
}

}  // namespace rk::gpu
