#include "layers/gpu/batchnorm.h"

#include "kernels/blocks/batchnorm_gradient_block.h"
#include "kernels/blocks/elementwise_block.h"
#include "kernels/launch.h"
#include "layers/gpu/batch_statistics.h"
#include "layers/gpu/nodes.h"
#include "layers/graphs/graph_runner.h"

#include <algorithm>

namespace rk::gpu {
namespace {

// Computed by our own kernels.
template <class T> class OwnBatchNorm : public BatchNormNode {
 public:
  // convolution: the one that writes x, if it also sums x per channel; else null.
  OwnBatchNorm(const std::string& name, Program& program, const Shape& shape,
               const BatchNormOptions& options, const SummingConvolution* convolution)
      : BatchNormNode(name, shape, options),
        context_(program.context()),
        parameters_(program.parameters()),
        rows_(shape[0] * shape[1] * shape[2]),
        channels_(static_cast<int>(shape[3])),
        tensors_(declare_batchnorm(program, name, shape[3])),
        statistics_(parameters_, tensors_, rows_, shape[3], convolution),
        gradients_(program.options().gradients) {}

  std::string implementation() const override {
    return statistics_.from_convolution()
               ? "batch norms by our own kernels from the convolutions' sums"
               : "batch norms by our own kernels";
  }

  void carve(Carver& saved, Carver& workspace) override {
    statistics_.carve(saved, workspace);
    signs_ = keeps_signs() ? saved.take<std::uint8_t>(sign_bytes<T>(rows_, channels_)) : nullptr;
  }

  void forward() override {
    const T* x = memory_.inputs[0].template as<T>();
    if (batch()) {
      statistics_.of_batch(x, options(), stream());
    } else {
      statistics_.running(options(), stream());
    }
    if (residual()) {
      apply<true>();
    } else {
      apply<false>();
    }
  }

  void backward() override {
    const BatchNormBackward<T> in{.rows = rows_,
                                  .channels = channels_,
                                  .x = memory_.inputs[0].template as<T>(),
                                  .dy = memory_.output_gradient.as<T>(),
                                  .signs = signs_,
                                  .mean = statistics_.mean(),
                                  .scale = statistics_.scale(),
                                  .beta = statistics_.beta()};
    T* d_residual = nullptr;
    auto write = GradientWrite::kNone;
    if (residual()) {
      d_residual = memory_.input_gradients[1].template as<T>();
      if (d_residual != nullptr) {
        write = memory_.uses[1].accumulate ? GradientWrite::kAdd : GradientWrite::kOverwrite;
      }
    }
    with_gradient_sums(mask(), write, [&]<ReluMask kMask, GradientWrite kResidual>() {
      launch(
          BatchNormGradientSums<T, kMask, kResidual>{
              .in = in, .d_residual = d_residual, .partial = statistics_.partial()},
          stream());
    });
    statistics_.finish_gradient_sums(batch(), stream());
    auto* dx = memory_.input_gradients[0].template as<T>();
    if (dx == nullptr) return;
    with_gradient_apply(mask(), memory_.uses[0].accumulate,
                        [&]<ReluMask kMask, GradientWrite kWrite>() {
                          launch(
                              BatchNormGradientApply<T, kMask, kWrite>{
                                  .in = in, .factors = statistics_.factors(), .dx = dx},
                              stream());
                        });
  }

  void count_forward() override {
    if (batch()) ++parameters_.counter(tensors_.count);
  }

 protected:
  CudaStream stream() const { return context_.stream(); }
  bool residual() const { return options().residual >= 0; }

  const Context& context_;
  Parameters& parameters_;
  std::int64_t rows_;
  int channels_;
  BatchNormTensors tensors_;

 private:
  template <bool kResidual> void apply() {
    const T* residual = nullptr;
    if constexpr (kResidual) residual = memory_.inputs[1].template as<T>();
    launch(BatchNormApply<T, kResidual>{.rows = rows_,
                                        .channels = channels_,
                                        .x = memory_.inputs[0].template as<T>(),
                                        .mean = statistics_.mean(),
                                        .scale = statistics_.scale(),
                                        .beta = statistics_.beta(),
                                        .residual = residual,
                                        .relu = options().relu,
                                        .signs = signs_,
                                        .y = memory_.output.as<T>()},
           stream());
  }
  bool batch() const { return options().mode == BatchNormMode::kBatch; }
  bool keeps_signs() const { return gradients_ && options().relu && residual(); }
  ReluMask mask() const {
    if (!options().relu) return ReluMask::kNone;
    return keeps_signs() ? ReluMask::kFromSigns : ReluMask::kFromInput;
  }

  BatchStatistics<T> statistics_;
  bool gradients_;
  std::uint8_t* signs_ = nullptr;
};

// Computed by cuDNN's graphs or, if cuDNN does not have them on this GPU, by our own kernels.
// Neither gradient may be in place: a graph's results must not overlap its inputs.
template <class T> class GraphBatchNorm final : public OwnBatchNorm<T>, public RunsGraphs {
  using Own = OwnBatchNorm<T>;
  using Own::channels_, Own::context_, Own::memory_, Own::parameters_, Own::residual, Own::rows_,
      Own::tensors_;

 public:
  GraphBatchNorm(const std::string& name, Program& program, const Shape& shape,
                 const BatchNormOptions& options)
      : Own(name, program, shape, options, nullptr),
        graphs_(batchnorm_graphs(shape, program.options().precision, options)) {}

  std::string implementation() const override {
    return by_graphs_ ? "batch norms by cuDNN" : Own::implementation();
  }

  void graphs(const std::vector<EdgeUse>& /*uses*/, std::vector<Graph>& list) const override {
    list.insert(list.end(), {graphs_.forward, graphs_.backward});
  }

  void plan(const std::vector<EdgeUse>& uses) override {
    constexpr const char* kOtherwise = "our own kernels take its place";
    by_graphs_ = GraphRunner::exists(context_, graphs_.forward, kOtherwise) &&
                 GraphRunner::exists(context_, graphs_.backward, kOtherwise);
    if (!by_graphs_) return;
    forward_ = GraphRunner(context_, graphs_.forward);
    backward_ = GraphRunner(context_, graphs_.backward);
    uses_ = uses;
  }

  // The graphs use another layout of the same memory.
  void carve(Carver& saved, Carver& workspace) override {
    if (!by_graphs_) return Own::carve(saved, workspace);
    mean_ = saved.take<float>(channels_);
    inv_std_ = saved.take<float>(channels_);
    signs_ = residual() ? saved.take<std::uint8_t>((elements() + 7) / 8) : nullptr;
    dx_ = aside(0) ? workspace.take<T>(elements()) : nullptr;
    d_residual_ = residual() && aside(1) ? workspace.take<T>(elements()) : nullptr;
    const std::size_t bytes = std::max(forward_.workspace_bytes(), backward_.workspace_bytes());
    workspace_ = workspace.take<std::byte>(static_cast<std::int64_t>(bytes));
  }

  void bind(const NodeMemory& memory) override {
    Own::bind(memory);
    if (!by_graphs_) return;
    using enum GraphRole;
    const float* gamma = parameters_.device_value(tensors_.gamma);
    const float* beta = parameters_.device_value(tensors_.beta);
    float* running_mean = parameters_.device_buffer(tensors_.mean);
    float* running_variance = parameters_.device_buffer(tensors_.variance);
    const T* x = memory.inputs[0].as<T>();
    // The running statistics are updated in place: each channel is read before it is written.
    forward_.bind({{kX, x},
                   {kResidual, residual() ? memory.inputs[1].as<T>() : nullptr},
                   {kY, memory.output.as<T>()},
                   {kGamma, gamma},
                   {kBeta, beta},
                   {kRunningMean, running_mean},
                   {kRunningVariance, running_variance},
                   {kNextMean, running_mean},
                   {kNextVariance, running_variance},
                   {kMean, mean_},
                   {kInvStd, inv_std_},
                   {kSigns, signs_}},
                  workspace_);
    if (memory.output_gradient.data == nullptr) return;
    backward_.bind({{kX, x},
                    {kDy, memory.output_gradient.as<T>()},
                    {kDx, aside(0) ? dx_ : memory.input_gradients[0].as<T>()},
                    {kGamma, gamma},
                    {kBeta, beta},
                    {kMean, mean_},
                    {kInvStd, inv_std_},
                    {kSigns, signs_},
                    {kMaskedDy, masked_dy()},
                    {kDGamma, parameters_.device_gradient(tensors_.gamma)},
                    {kDBeta, parameters_.device_gradient(tensors_.beta)}},
                   workspace_);
  }

  void forward() override { by_graphs_ ? forward_.run() : Own::forward(); }

  void backward() override {
    if (!by_graphs_) return Own::backward();
    backward_.run();
    add(0, dx_);
    if (residual()) add(1, d_residual_);
  }

 private:
  // The graph overwrites: a gradient that must be accumulated, or that nobody wants, goes to the
  // workspace.
  bool aside(std::size_t input) const { return !uses_[input].wanted || uses_[input].accumulate; }
  T* masked_dy() const {
    if (!residual()) return nullptr;
    return aside(1) ? d_residual_ : memory_.input_gradients[1].template as<T>();
  }
  std::int64_t elements() const { return rows_ * channels_; }
  void add(std::size_t input, const T* gradient) const {
    if (!uses_[input].accumulate) return;
    launch(CopyOrAdd<T>{.count = elements(),
                        .x = gradient,
                        .y = memory_.input_gradients[input].template as<T>(),
                        .accumulate = true},
           this->stream());
  }

  BatchNormGraphs graphs_;
  bool by_graphs_ = true;
  GraphRunner forward_, backward_;
  std::vector<EdgeUse> uses_;
  float* mean_ = nullptr;
  float* inv_std_ = nullptr;
  std::uint8_t* signs_ = nullptr;
  T* dx_ = nullptr;
  T* d_residual_ = nullptr;
  void* workspace_ = nullptr;  // of the graphs
};

// Whether to try the library's graphs.
bool wants_graphs(const Program& program, const Shape& shape, const BatchNormOptions& options) {
  const Precision precision = program.options().precision;
  if (options.mode != BatchNormMode::kBatch || !program.options().gradients ||
      !normalises_by_graph(precision) || (options.residual >= 0 && !options.relu)) {
    return false;
  }
  const std::string graph = batchnorm_graphs(shape, precision, options).forward.text();
  return plans_of(program.context()).engine(graph) != GpuPlans::kOwnKernels;
}

}  // namespace

BatchNormGraphs batchnorm_graphs(const Shape& shape, Precision precision,
                                 const BatchNormOptions& options) {
  using enum GraphRole;
  const bool residual = options.residual >= 0;
  const Shape channels = {shape[3]};

  Graph forward(precision);
  {
    const auto x = forward.read(kX, shape);
    const auto gamma = forward.read(kGamma, channels), beta = forward.read(kBeta, channels);
    const auto running_mean = forward.read(kRunningMean, channels);
    const auto running_variance = forward.read(kRunningVariance, channels);
    auto [y, mean, inv_std, next_mean, next_variance] = forward.batchnorm(
        x, gamma, beta, running_mean, running_variance, options.epsilon, options.momentum);
    if (residual) y = forward.add(y, forward.read(kResidual, shape));
    if (options.relu) y = forward.relu(y);
    forward.write(y, kY);
    forward.write(mean, kMean);
    forward.write(inv_std, kInvStd);
    forward.write(next_mean, kNextMean);
    forward.write(next_variance, kNextVariance);
    if (residual) forward.write(forward.positive(y), kSigns);
  }

  // A ReLU directly after the normalisation: the mask is recomputed from x. After a residual: the
  // mask is read from the sign bits, and the masked dy is also written, as the residual's gradient.
  Graph backward(precision);
  auto dy = backward.read(kDy, shape);
  const auto x = backward.read(kX, shape), gamma = backward.read(kGamma, channels);
  const auto mean = backward.read(kMean, channels), inv_std = backward.read(kInvStd, channels);
  if (residual) {
    dy = backward.mask(dy, backward.read(kSigns, shape));
    backward.write(dy, kMaskedDy);
  } else if (options.relu) {
    const auto beta = backward.read(kBeta, channels);
    dy = backward.relu_gradient(dy, backward.normalize(x, gamma, beta, mean, inv_std));
  }
  const auto [dx, dgamma, dbeta] = backward.batchnorm_gradient(dy, x, gamma, mean, inv_std);
  backward.write(dx, kDx);
  backward.write(dgamma, kDGamma);
  backward.write(dbeta, kDBeta);
  return {forward, backward};
}

std::unique_ptr<Node> batchnorm_node(const std::string& name, Program& program, TensorId x,
                                     const BatchNormOptions& options,
                                     std::vector<NodeInput>& inputs) {
  const Shape shape = program.shape(x);
  const SummingConvolution* convolution = summing_producer(program, x);
  const bool by_graphs = convolution == nullptr && wants_graphs(program, shape, options);
  if (by_graphs) {
    for (NodeInput& input : inputs) input.gradient_in_place = false;
  }
  return with_image_type(program.options().precision, [&]<class T>() -> std::unique_ptr<Node> {
    if (by_graphs) return std::make_unique<GraphBatchNorm<T>>(name, program, shape, options);
    return std::make_unique<OwnBatchNorm<T>>(name, program, shape, options, convolution);
  });
}

}  // namespace rk::gpu
