#include "kernels/blocks/weights_block.h"
#include "layers/gpu/batchnorm.h"
#include "layers/gpu/convolution.h"
#include "layers/gpu/nodes.h"
#include "layers/gpu/weights.h"

#include <type_traits>

namespace rk::gpu {
namespace {

// The output is also summed per channel if the plan table names an engine for that.
Epilogue epilogue(const Program& program, const ConvolutionGeometry& geometry) {
  const Precision precision = program.options().precision;
  if (!program.options().gradients || !fuses_sums(precision)) return {};
  const Epilogue sums{.sums = true};
  const std::string graph = forward_graph(geometry, precision, sums).text();
  return plans_of(program.context()).names_engine(graph) ? sums : Epilogue{};
}

// The weight is kept in float32; before every forward pass it is cast to T and padded to the
// images' input channels. Its gradient is computed in T and widened after backward
// (layers/gpu/weights.h). If neither type nor channels differ, the graphs use the parameters
// directly.
template <class T> class Conv2dNode final : public SummingConvolution, public RunsGraphs {
 public:
  Conv2dNode(const std::string& name, Program& program, const ConvolutionGeometry& geometry)
      : SummingConvolution(name, program, name, geometry),
        casts_(!std::is_same_v<T, float> || shape().inputs != shape().padded_inputs),
        weights_(casts_ ? &cast_weights<T>(program) : nullptr),
        wide_(casts_ && program.options().gradients ? &wide_gradients<T>(program) : nullptr),
        epilogue_(epilogue(program, geometry)),
        convolution_(program.context(), geometry, program.options().precision, epilogue_,
                     program.options().gradients) {}

  std::string implementation() const override {
    return adds_up() ? "convolutions that add up their output by cuDNN" : "convolutions by cuDNN";
  }
  bool adds_up() const override { return epilogue_.sums; }
  Sums sums() const override { return {sum_, squares_}; }

  void graphs(const std::vector<EdgeUse>& uses, std::vector<Graph>& list) const override {
    convolution_.graphs(uses[0], list);
  }

  void plan(const std::vector<EdgeUse>& uses) override {
    if (casts_) {
      cast_ = weights_->add({.shape = shape(), .weight = parameters_.device_value(weight_)},
                            /*used=*/true);
    }
    if (wide_ != nullptr) {
      gradient_ = wide_->add({.shape = shape(), .d_weight = parameters_.device_gradient(weight_)},
                             /*used=*/false);
    }
    convolution_.plan(uses[0]);
  }

  void carve(Carver& saved, Carver& workspace) override {
    if (adds_up()) {
      sum_ = saved.take<float>(geometry().y[3]);
      squares_ = saved.take<float>(geometry().y[3]);
    }
    convolution_.carve(workspace);
  }

  void bind(const NodeMemory& memory) override {
    const T* w = weight();
    convolution_.bind_forward({.x = memory.inputs[0].as<T>(),
                               .w = w,
                               .y = memory.output.as<T>(),
                               .sum = sum_,
                               .squares = squares_});
    if (memory.output_gradient.data == nullptr) return;
    if (wide_ != nullptr) wide_->use(gradient_);
    convolution_.bind_backward({.x = memory.inputs[0].as<T>(),
                                .dy = memory.output_gradient.as<T>(),
                                .w = w,
                                .dw = gradient(),
                                .dx = memory.input_gradients[0].as<T>(),
                                .addend = memory.addends[0].as<T>()});
  }

  void forward() override { convolution_.forward(); }

  void backward() override {
    convolution_.backward_weights();
    convolution_.backward_data();
  }

 private:
  FilterShape shape() const { return filter_shape(geometry()); }

  const T* weight() const {
    if constexpr (std::is_same_v<T, float>) {
      if (!casts_) return parameters_.device_value(weight_);
    }
    return (*weights_)[cast_].prepared;
  }
  T* gradient() const {
    if constexpr (std::is_same_v<T, float>) {
      if (!casts_) return parameters_.device_gradient(weight_);
    }
    return (*wide_)[gradient_].gradient;
  }

  bool casts_;
  CastWeights<T>* weights_;
  WideGradients<T>* wide_;
  int cast_ = -1, gradient_ = -1;
  Epilogue epilogue_;
  Convolution<T> convolution_;
  float* sum_ = nullptr;
  float* squares_ = nullptr;
};

}  // namespace

std::unique_ptr<Node> conv2d_node(const std::string& name, Program& program,
                                  const ConvolutionGeometry& geometry) {
  return with_image_type(program.options().precision, [&]<class T>() -> std::unique_ptr<Node> {
    return std::make_unique<Conv2dNode<T>>(name, program, geometry);
  });
}

}  // namespace rk::gpu
