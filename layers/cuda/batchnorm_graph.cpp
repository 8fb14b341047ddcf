#include "engine/device/cuda/context.h"
#include "kernels/blocks/elementwise_block.h"
#include "kernels/half_element.h"
#include "kernels/launch.h"
#include "layers/cuda/batchnorm.h"
#include "layers/cuda/element.h"

namespace rk::gpu {
namespace {

template <class T> class GraphBatchNormNode final : public Node {
 public:
  GraphBatchNormNode(const std::string& name, Program& program, const Shape& shape,
                     const BatchNormOptions& options)
      : Node(name),
        context_(program.context()),
        parameters_(program.parameters()),
        elements_(shape.elements()),
        channels_(shape[3]),
        residual_(options.residual >= 0),
        tensors_(declare_batchnorm(program, name, shape[3])) {
    const BatchNormGraphs graphs =
        batchnorm_graphs(shape, program.options().precision, options.relu, residual_);
    forward_ = GpuGraph(context_, graphs.forward);
    backward_ = GpuGraph(context_, graphs.backward);
  }

  std::string way() const override { return "batch norms by cuDNN"; }

  NodeClaims plan(const std::vector<EdgeUse>& uses) override {
    uses_ = uses;
    Pieces saved, workspace;
    take_saved(saved);
    take_workspace(workspace);
    return {saved.used(),
            workspace.used() + std::max(forward_.workspace_bytes(), backward_.workspace_bytes())};
  }

  void bind(const NodeMemory& memory) override {
    Node::bind(memory);
    Pieces saved(memory.saved), workspace(memory.workspace);
    take_saved(saved);
    take_workspace(workspace);
    const float* gamma = parameters_.device_value(tensors_.gamma);
    const float* beta = parameters_.device_value(tensors_.beta);
    const T* x = memory.inputs[0].as<T>();
    forward_.bind({{GraphRole::kX, x},
                   {GraphRole::kResidual, residual_ ? memory.inputs[1].as<T>() : nullptr},
                   {GraphRole::kY, memory.output.as<T>()},
                   {GraphRole::kGamma, gamma},
                   {GraphRole::kBeta, beta},
                   {GraphRole::kRunningMean, parameters_.device_buffer(tensors_.mean)},
                   {GraphRole::kRunningVariance, parameters_.device_buffer(tensors_.variance)},
                   // In place: a channel's is read before it is written.
                   {GraphRole::kNextMean, parameters_.device_buffer(tensors_.mean)},
                   {GraphRole::kNextVariance, parameters_.device_buffer(tensors_.variance)},
                   {GraphRole::kMean, mean_},
                   {GraphRole::kInvStd, inv_std_},
                   {GraphRole::kSigns, signs_}},
                  workspace.rest());
    backward_.bind({{GraphRole::kX, x},
                    {GraphRole::kDy, memory.output_gradient.as<T>()},
                    {GraphRole::kDx, aside(0) ? dx_ : memory.input_gradients[0].as<T>()},
                    {GraphRole::kGamma, gamma},
                    {GraphRole::kBeta, beta},
                    {GraphRole::kMean, mean_},
                    {GraphRole::kInvStd, inv_std_},
                    {GraphRole::kSigns, signs_},
                    {GraphRole::kMaskedDy, masked_dy()},
                    {GraphRole::kDGamma, parameters_.device_gradient(tensors_.gamma)},
                    {GraphRole::kDBeta, parameters_.device_gradient(tensors_.beta)}},
                   workspace.rest());
  }

  void forward() override { forward_.run(); }

  void backward() override {
    backward_.run();
    add(0, dx_);
    if (residual_) add(1, d_residual_);
  }

  void count_forward() override { ++parameters_.counter(tensors_.count); }

 private:
  // The graph overwrites: where a gradient is to be added, or nobody wants it, it gets a place in
  // the workspace.
  bool aside(std::size_t input) const { return !uses_[input].wanted || uses_[input].accumulate; }
  T* masked_dy() const {
    if (!residual_) return nullptr;
    return aside(1) ? d_residual_ : memory_.input_gradients[1].template as<T>();
  }
  void add(std::size_t input, const T* gradient) const {
    if (!uses_[input].accumulate) return;
    launch(CopyOrAdd<T>{.count = elements_,
                        .x = gradient,
                        .y = memory_.input_gradients[input].template as<T>(),
                        .accumulate = true},
           context_.cuda().stream());
  }

  void take_saved(Pieces& pieces) {
    mean_ = pieces.take<float>(channels_);
    inv_std_ = pieces.take<float>(channels_);
    signs_ = residual_ ? pieces.take<std::uint8_t>((elements_ + 7) / 8) : nullptr;
  }
  void take_workspace(Pieces& pieces) {
    dx_ = aside(0) ? pieces.take<T>(elements_) : nullptr;
    d_residual_ = residual_ && aside(1) ? pieces.take<T>(elements_) : nullptr;
  }

  const Context& context_;
  Parameters& parameters_;
  std::int64_t elements_, channels_;
  bool residual_;
  BatchNormTensors tensors_;
  GpuGraph forward_, backward_;
  std::vector<EdgeUse> uses_;
  float* mean_ = nullptr;
  float* inv_std_ = nullptr;
  std::uint8_t* signs_ = nullptr;
  T* dx_ = nullptr;
  T* d_residual_ = nullptr;
};

}  // namespace

bool graphs_normalise(const Program& program, const Shape& shape, const BatchNormOptions& options) {
  const Precision precision = program.options().precision;
  if (options.mode != BatchNormMode::kBatch || !program.options().gradients ||
      !normalises_by_graph(precision) || (options.residual >= 0 && !options.relu) ||
      options.epsilon != kGraphEpsilon || options.momentum != kGraphMomentum) {
    return false;
  }
  const Context& context = program.context();
  const BatchNormGraphs graphs =
      batchnorm_graphs(shape, precision, options.relu, options.residual >= 0);
  return plans_of(context).engine(graphs.forward.text()) != GpuPlans::kOwnKernels &&
         GpuGraph::exists(context, graphs.forward) && GpuGraph::exists(context, graphs.backward);
}

std::unique_ptr<Node> graph_batchnorm_node(const std::string& name, Program& program,
                                           const Shape& shape, const BatchNormOptions& options) {
  return with_image_type(program.options().precision, [&]<class T>() -> std::unique_ptr<Node> {
    return std::make_unique<GraphBatchNormNode<T>>(name, program, shape, options);
  });
}

}  // namespace rk::gpu
