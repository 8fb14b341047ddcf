#include "kernels/blocks/elementwise_block.h"
#include "kernels/blocks/folded_block.h"
#include "kernels/launch.h"
#include "layers/gpu/convolution.h"
#include "layers/gpu/nodes.h"
#include "layers/gpu/weights.h"

namespace rk::gpu {
namespace {

// A residual is fused together with the ReLU that follows it in every network; without a ReLU it is
// added afterwards.
Epilogue epilogue(const BatchNormOptions& options) {
  return {.bias = true, .residual = options.relu && options.residual >= 0, .relu = options.relu};
}

template <class T> class FoldedConvNode final : public ConvolutionNode, public RunsGraphs {
 public:
  FoldedConvNode(const ConvBnNames& names, Program& program, const ConvolutionGeometry& geometry,
                 const BatchNormOptions& options)
      : ConvolutionNode(names.convolution + " and " + names.batchnorm, program, names.convolution,
                        geometry),
        options_(options),
        gradients_(program.options().gradients),
        preserve_(program.options().keep_all),
        tensors_(declare_batchnorm(program, names.batchnorm, geometry.y[3])),
        weights_(cast_weights<T>(program)),
        unfolded_(gradients_ ? &unfolded_gradients<T>(program) : nullptr),
        convolution_(program.context(), geometry, program.options().precision, epilogue(options),
                     program.options().gradients) {}

  std::string_view kind() const override { return "convolution with folded batch norm"; }
  std::string implementation() const override {
    return memory_.output_gradient_sums == nullptr
               ? "convolutions with folded batch norm by cuDNN"
               : "convolutions with folded batch norm, gradients added up, by cuDNN";
  }
  bool sums_gradient(std::size_t input, const EdgeUse& use) const override {
    return input == 0 && convolution_.sums_gradient(use);
  }

  void set_row_stride(std::int64_t row_stride) override { convolution_.set_row_stride(row_stride); }

  void graphs(const std::vector<EdgeUse>& uses, std::vector<Graph>& list) const override {
    convolution_.graphs(uses[0], list);
  }

  void plan(const std::vector<EdgeUse>& uses) override {
    fold_ = weights_.add({.shape = shape(),
                          .weight = parameters_.device_value(weight_),
                          .gamma = parameters_.device_value(tensors_.gamma),
                          .beta = parameters_.device_value(tensors_.beta),
                          .mean = parameters_.device_buffer(tensors_.mean),
                          .variance = parameters_.device_buffer(tensors_.variance),
                          .epsilon = options_.epsilon},
                         /*used=*/true);
    if (gradients_) {
      unfold_ = unfolded_->add({.shape = shape(),
                                .rows = rows(),
                                .weight = parameters_.device_value(weight_),
                                .mean = parameters_.device_buffer(tensors_.mean),
                                .d_weight = parameters_.device_gradient(weight_),
                                .d_gamma = parameters_.device_gradient(tensors_.gamma),
                                .d_beta = parameters_.device_gradient(tensors_.beta)},
                               /*used=*/false);
    }
    convolution_.plan(uses[0]);
  }

  void carve(Carver& /*saved*/, Carver& workspace) override {
    // The masked gradient overwrites dy, unless dy must be readable after the step.
    const bool apart = gradients_ && options_.relu && preserve_;
    gradient_ = apart ? workspace.take<T>(geometry().y.elements()) : nullptr;
    convolution_.carve(workspace);
  }

  void bind(const NodeMemory& memory) override {
    Node::bind(memory);
    const T* residual = options_.residual >= 0 ? memory.inputs[1].as<T>() : nullptr;
    convolution_.bind_forward({.x = memory.inputs[0].as<T>(),
                               .w = folded().prepared,
                               .bias = folded().bias,
                               .residual = residual,
                               .y = memory.output.as<T>()});
    if (memory.output_gradient.data == nullptr) return;
    FoldedGradient<T>& unfolded = (*unfolded_)[unfold_];
    unfolded.scale = folded().scale;
    unfolded.inv_std = folded().inv_std;
    unfolded.sum = memory.output_gradient_sums;
    unfolded_->use(unfold_);
    // A gradient masked by its writer is read in place.
    if (gradient_ == nullptr || memory.output_gradient_masked) {
      gradient_ = memory.output_gradient.as<T>();
    }
    convolution_.bind_backward({.x = memory.inputs[0].as<T>(),
                                .dy = gradient_,
                                .w = folded().prepared,
                                .dw = unfolded.d_folded,
                                .dx = memory.input_gradients[0].as<T>(),
                                .addend = memory.addends[0].as<T>(),
                                .dx_sums = memory.gradient_sums[0]});
  }

  void forward() override {
    convolution_.forward();
    if (options_.residual >= 0 && !options_.relu) {
      launch(CopyOrAdd<T>{.count = geometry().y.elements(),
                          .x = memory_.inputs[1].template as<T>(),
                          .y = memory_.output.as<T>(),
                          .accumulate = true},
             stream());
    }
  }

  void backward() override {
    if (memory_.output_gradient_sums == nullptr) {
      add_up_gradient();
    } else {
      pass_on_gradient();
    }
    convolution_.backward_weights();
    convolution_.backward_data();
  }

 private:
  // One pass: the mask (unless already applied), the sum over the batch and the residual's
  // gradient.
  void add_up_gradient() {
    const T* dy = memory_.output_gradient.as<T>();
    const bool masks = options_.relu && !memory_.output_gradient_masked;
    MaskedSums<T> sums{.rows = rows(),
                       .channels = channels(),
                       .row_stride = static_cast<int>(convolution_.y_row_stride()),
                       .dy = dy,
                       .z = masks ? memory_.output.as<T>() : nullptr,
                       .gradient = masks ? gradient_ : nullptr,
                       .partial = (*unfolded_)[unfold_].partial};
    sums.d_residual = residual_gradient();
    if (sums.d_residual != nullptr) sums.accumulate = memory_.uses[1].accumulate;
    launch(sums, stream());
  }
  // For a gradient that its writer has masked and summed.
  void pass_on_gradient() {
    T* d_residual = residual_gradient();
    if (d_residual == nullptr) return;
    launch(CopyOrAdd<T>{.count = geometry().y.elements(),
                        .x = gradient_,
                        .y = d_residual,
                        .accumulate = memory_.uses[1].accumulate},
           stream());
  }
  // Null if there is no residual, its gradient is not wanted, or the gradient is already there.
  T* residual_gradient() const {
    if (options_.residual < 0) return nullptr;
    auto* d_residual = memory_.input_gradients[1].template as<T>();
    return d_residual == gradient_ ? nullptr : d_residual;
  }

  CudaStream stream() const { return context_.stream(); }
  int channels() const { return static_cast<int>(geometry().y[3]); }
  std::int64_t rows() const { return geometry().y.elements() / geometry().y[3]; }
  FilterShape shape() const { return filter_shape(geometry()); }

  const Filter<T>& folded() const { return weights_[fold_]; }

  BatchNormOptions options_;
  bool gradients_;
  bool preserve_;
  BatchNormTensors tensors_;
  CastWeights<T>& weights_;
  UnfoldedGradients<T>* unfolded_;
  int fold_ = -1, unfold_ = -1;
  Convolution<T> convolution_;
  T* gradient_ = nullptr;
};

}  // namespace

std::unique_ptr<Node> folded_conv_node(const ConvBnNames& names, Program& program,
                                       const ConvolutionGeometry& geometry,
                                       const BatchNormOptions& options) {
  return with_image_type(program.options().precision, [&]<class T>() -> std::unique_ptr<Node> {
    return std::make_unique<FoldedConvNode<T>>(names, program, geometry, options);
  });
}

}  // namespace rk::gpu
