#include "layers/cuda/batchnorm.h"
#include "engine/device/cuda/context.h"
#include "kernels/blocks/batchnorm_gradient_block.h"
#include "kernels/launch.h"
#include "layers/cuda/element.h"
#include "layers/cuda/nodes.h"

namespace rk::gpu {
namespace {

template <class T> class BatchNormNode final : public Node {
 public:
  // convolution: the one that adds up x, where it does.
  BatchNormNode(const std::string& name, Program& program, const Shape& shape,
                const BatchNormOptions& options, const SummingConvolution* convolution)
      : Node(name),
        context_(program.context()),
        parameters_(program.parameters()),
        rows_(shape[0] * shape[1] * shape[2]),
        channels_(static_cast<int>(shape[3])),
        options_(options),
        convolution_(convolution),
        gradients_(program.options().gradients),
        tensors_(declare_batchnorm(program, name, shape[3])) {}

  std::string way() const override {
    return convolution_ != nullptr ? "batch norms by our own kernels from the convolutions' sums"
                                   : "batch norms by our own kernels";
  }

  NodeClaims plan(const std::vector<EdgeUse>& /*uses*/) override {
    Pieces saved, workspace;
    take_saved(saved);
    take_workspace(workspace);
    return {saved.used(), workspace.used()};
  }

  void bind(const NodeMemory& memory) override {
    Node::bind(memory);
    Pieces saved(memory.saved), workspace(memory.workspace);
    take_saved(saved);
    take_workspace(workspace);
  }

  void forward() override {
    const T* y = memory_.inputs[0].template as<T>();
    const float* gamma = parameters_.device_value(tensors_.gamma);
    float* running_mean = parameters_.device_buffer(tensors_.mean);
    float* running_variance = parameters_.device_buffer(tensors_.variance);
    if (batch()) {
      const BatchNormStatisticsOut out{.gamma = gamma,
                                       .epsilon = options_.epsilon,
                                       .momentum = options_.momentum,
                                       .running_mean = running_mean,
                                       .running_variance = running_variance,
                                       .mean = mean_,
                                       .inv_std = inv_std_,
                                       .scale = scale_};
      statistics(y, out);
    } else {
      launch(BatchNormRunning{.channels = channels_,
                              .gamma = gamma,
                              .epsilon = options_.epsilon,
                              .running_mean = running_mean,
                              .running_variance = running_variance,
                              .mean = mean_,
                              .inv_std = inv_std_,
                              .scale = scale_},
             stream());
    }
    if (options_.residual >= 0) {
      apply<true>();
    } else {
      apply<false>();
    }
  }

  void backward() override {
    const BatchNormBackward<T> in{.rows = rows_,
                                  .channels = channels_,
                                  .y = memory_.inputs[0].template as<T>(),
                                  .dz = memory_.output_gradient.as<T>(),
                                  .signs = signs_,
                                  .mean = mean_,
                                  .scale = scale_,
                                  .beta = parameters_.device_value(tensors_.beta)};
    T* d_residual = nullptr;
    auto write = GradientWrite::kNone;
    if (options_.residual >= 0) {
      d_residual = memory_.input_gradients[1].template as<T>();
      if (d_residual != nullptr) {
        write = memory_.uses[1].accumulate ? GradientWrite::kAdd : GradientWrite::kOverwrite;
      }
    }
    with_gradient_sums(mask(), write, [&]<ReluMask kMask, GradientWrite kResidual>() {
      launch(
          BatchNormGradientSums<T, kMask, kResidual>{
              .in = in, .d_residual = d_residual, .partial = partial_},
          stream());
    });
    launch(BatchNormGradientFactors{.rows = rows_,
                                    .channels = channels_,
                                    .batch_statistics = batch(),
                                    .partial = partial_,
                                    .inv_std = inv_std_,
                                    .scale = scale_,
                                    .d_gamma = parameters_.device_gradient(tensors_.gamma),
                                    .d_beta = parameters_.device_gradient(tensors_.beta),
                                    .factors = factors_},
           stream());
    auto* dx = memory_.input_gradients[0].template as<T>();
    if (dx == nullptr) return;
    with_gradient_apply(
        mask(), memory_.uses[0].accumulate, [&]<ReluMask kMask, GradientWrite kWrite>() {
          launch(BatchNormGradientApply<T, kMask, kWrite>{.in = in, .factors = factors_, .dy = dx},
                 stream());
        });
  }

  void count_forward() override {
    if (batch()) ++parameters_.counter(tensors_.count);
  }

 private:
  CudaStream stream() const { return context_.cuda().stream(); }
  void statistics(const T* y, const BatchNormStatisticsOut& out) {
    if (convolution_ != nullptr) {
      const SummingConvolution::Sums sums = convolution_->sums();
      launch(BatchNormStatisticsOfSums{.rows = rows_,
                                       .channels = channels_,
                                       .sum = sums.sum,
                                       .squares = sums.squares,
                                       .out = out},
             stream());
      return;
    }
    launch(BatchNormSums<T>{.rows = rows_, .channels = channels_, .y = y, .partial = partial_},
           stream());
    launch(
        BatchNormStatistics{.rows = rows_, .channels = channels_, .partial = partial_, .out = out},
        stream());
  }
  template <bool kResidual> void apply() {
    const T* residual = nullptr;
    if constexpr (kResidual) residual = memory_.inputs[1].template as<T>();
    launch(BatchNormApply<T, kResidual>{.rows = rows_,
                                        .channels = channels_,
                                        .y = memory_.inputs[0].template as<T>(),
                                        .mean = mean_,
                                        .scale = scale_,
                                        .beta = parameters_.device_value(tensors_.beta),
                                        .residual = residual,
                                        .relu = options_.relu,
                                        .signs = signs_,
                                        .z = memory_.output.as<T>()},
           stream());
  }
  bool batch() const { return options_.mode == BatchNormMode::kBatch; }
  bool keeps_signs() const { return gradients_ && options_.relu && options_.residual >= 0; }
  ReluMask mask() const {
    if (!options_.relu) return ReluMask::kNone;
    return keeps_signs() ? ReluMask::kFromSigns : ReluMask::kFromInput;
  }

  void take_saved(Pieces& pieces) {
    mean_ = pieces.take<float>(channels_);
    inv_std_ = pieces.take<float>(channels_);
    scale_ = pieces.take<float>(channels_);
    signs_ = keeps_signs() ? pieces.take<std::uint8_t>(sign_bytes<T>(rows_, channels_)) : nullptr;
  }
  void take_workspace(Pieces& pieces) {
    partial_ = pieces.take<double>(ChannelTiles{rows_, channels_}.partials(2));
    factors_ = pieces.take<float>(3 * static_cast<std::int64_t>(channels_));
  }

  const Context& context_;
  Parameters& parameters_;
  std::int64_t rows_;
  int channels_;
  BatchNormOptions options_;
  const SummingConvolution* convolution_;
  bool gradients_;
  BatchNormTensors tensors_;
  float* mean_ = nullptr;
  float* inv_std_ = nullptr;
  float* scale_ = nullptr;
  std::uint8_t* signs_ = nullptr;
  double* partial_ = nullptr;
  float* factors_ = nullptr;
};

}  // namespace

std::unique_ptr<Node> batchnorm_node(const std::string& name, Program& program, TensorId x,
                                     const BatchNormOptions& options,
                                     std::vector<NodeInput>& inputs) {
  const Shape shape = program.shape(x);
  const auto* convolution = dynamic_cast<const SummingConvolution*>(program.producer(x));
  if (convolution != nullptr && !convolution->adds_up()) convolution = nullptr;
  if (convolution == nullptr && graphs_normalise(program, shape, options)) {
    for (NodeInput& input : inputs) input.gradient_in_place = false;
    return graph_batchnorm_node(name, program, shape, options);
  }
  return with_image_type(program.options().precision, [&]<class T>() -> std::unique_ptr<Node> {
    return std::make_unique<BatchNormNode<T>>(name, program, shape, options, convolution);
  });
}

}  // namespace rk::gpu
