// The one file that sees cuDNN's frontend: its headers compile slowly.
#include "layers/gpu_graph_cudnn.h"

#include "engine/dynamic_library.h"
#include "engine/error.h"

#include <cudnn_frontend.h>

#include <algorithm>
#include <vector>

// The frontend takes every function of the library from here.
namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;
}

namespace rk {
namespace {

namespace fe = cudnn_frontend;
using fe::graph::Graph;
using Type = fe::DataType_t;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;
using Mode = fe::PointwiseMode_t;

void load_cudnn() {
  static const DynamicLibrary library = [] {
    DynamicLibrary found(fmt::format("libcudnn.so.{}", CUDNN_MAJOR));
    return found.handle() != nullptr ? found : DynamicLibrary(RK_CUDNN_LIBRARY);
  }();
  if (library.handle() == nullptr) fail<DeviceError>("cuDNN: {}", library.problem());
  fe::cudnn_dlhandle = library.handle();
}

Type element_type(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
    case Precision::kTf32: return Type::FLOAT;
    case Precision::kFp16: return Type::HALF;
    case Precision::kBf16: return Type::BFLOAT16;
  }
  return Type::NOT_SET;
}

// Writes a spec in the frontend's terms. Dimensions go in as (N, C, H, W), strides say NHWC.
class Recorder {
 public:
  Recorder(Graph& graph, const GraphSpec& spec) : graph_(graph), s_(spec) {}

  void record() {
    switch (s_.kind) {
      case GraphKind::kConvolution: output(forward()); return;
      case GraphKind::kConvolutionSums: return convolution_sums();
      case GraphKind::kConvolutionBias: output(biased(forward())); return;
      case GraphKind::kConvolutionBiasRelu: output(relu(biased(forward()))); return;
      case GraphKind::kConvolutionBiasAddRelu:
        output(relu(biased(pointwise(Mode::ADD, forward(), y("residual")))));
        return;
      case GraphKind::kInputGradient: output(input_gradient()); return;
      case GraphKind::kInputGradientAdd:
        output(pointwise(Mode::ADD, input_gradient(), x("other")));
        return;
      case GraphKind::kInputGradientRelu:
        output(pointwise(Mode::RELU_BWD, input_gradient(), x("x")));
        return;
      case GraphKind::kInputGradientAddRelu:
        output(
            pointwise(Mode::RELU_BWD, pointwise(Mode::ADD, input_gradient(), x("other")), x("x")));
        return;
      case GraphKind::kWeightGradient: return weight_gradient();
      case GraphKind::kBatchNormFinish: return batchnorm_finish();
      case GraphKind::kBatchNorm: output(batchnorm()); return;
      case GraphKind::kBatchNormRelu: output(relu(batchnorm())); return;
      case GraphKind::kBatchNormAddRelu: return batchnorm_add_relu();
      case GraphKind::kBatchNormGradient: return batchnorm_gradient(y("dz"));
      case GraphKind::kBatchNormReluGradient: return batchnorm_relu_gradient();
      case GraphKind::kBatchNormAddReluGradient: return batchnorm_add_relu_gradient();
    }
  }

 private:
  static constexpr float kEpsilon = 1e-5F;  // of no consequence to which plans there are
  static constexpr float kMomentum = 0.1F;

  Tensor tensor(const char* name, std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w,
                Type type) {
    return graph_.tensor(fe::graph::Tensor_attributes()
                             .set_name(name)
                             .set_dim({n, c, h, w})
                             .set_stride({c * h * w, 1, c * w, c})
                             .set_data_type(type));
  }
  Type type() const { return element_type(s_.precision); }
  Tensor x(const char* name) { return tensor(name, s_.n, s_.c, s_.h, s_.w, type()); }
  Tensor y(const char* name) {
    return tensor(name, s_.n, s_.out_channels, s_.out_h(), s_.out_w(), type());
  }
  Tensor w() { return tensor("w", s_.out_channels, s_.c, s_.kernel, s_.kernel, type()); }
  Tensor channels(const char* name) { return tensor(name, 1, s_.out_channels, 1, 1, Type::FLOAT); }

  void output(const Tensor& t, Type type) { t->set_output(true).set_data_type(type); }
  void output(const Tensor& t) { output(t, type()); }
  void output_channels(std::initializer_list<Tensor> tensors) {
    for (const Tensor& t : tensors) output(t, Type::FLOAT);
  }

  static fe::graph::Pointwise_attributes operation(Mode mode) {
    return fe::graph::Pointwise_attributes().set_mode(mode).set_compute_data_type(Type::FLOAT);
  }
  Tensor pointwise(Mode mode, const Tensor& a, const Tensor& b) {
    return graph_.pointwise(a, b, operation(mode));
  }
  Tensor relu(const Tensor& t) { return graph_.pointwise(t, operation(Mode::RELU_FWD)); }

  template <class Attributes> Attributes geometry() const {
    return Attributes()
        .set_padding({s_.padding, s_.padding})
        .set_stride({s_.stride, s_.stride})
        .set_dilation({1, 1});
  }
  Tensor forward() {
    return graph_.conv_fprop(x("x"), w(), geometry<fe::graph::Conv_fprop_attributes>());
  }
  // The bias in the precision's type, and added last: so the library has these graphs ready made;
  // with a float32 bias, or the residual behind it, it compiles a kernel for each.
  Tensor biased(const Tensor& t) {
    return pointwise(Mode::ADD, t, tensor("b", 1, s_.out_channels, 1, 1, type()));
  }
  Tensor input_gradient() {
    Tensor dx = graph_.conv_dgrad(y("dy"), w(), geometry<fe::graph::Conv_dgrad_attributes>());
    dx->set_dim({s_.n, s_.c, s_.h, s_.w});
    return dx;
  }
  void weight_gradient() {
    Tensor dw = graph_.conv_wgrad(y("dy"), x("x"), geometry<fe::graph::Conv_wgrad_attributes>());
    dw->set_dim({s_.out_channels, s_.c, s_.kernel, s_.kernel});
    output(dw);
  }

  void convolution_sums() {
    const Tensor result = forward();
    output(result);
    auto [sum, squares] = graph_.genstats(
        result, fe::graph::Genstats_attributes().set_compute_data_type(Type::FLOAT));
    output_channels({sum, squares});
  }

  // The attributes of a normalisation that advances running statistics; `in` outlives the call.
  struct Running {
    Tensor mean, variance, epsilon, momentum;
  };
  Running running() {
    return {channels("running_mean"), channels("running_var"), graph_.tensor(kEpsilon),
            graph_.tensor(kMomentum)};
  }
  void batchnorm_finish() {
    Running in = running();
    auto [scale, shift, mean, inv_std, next_mean, next_variance] =
        graph_.bn_finalize(channels("sum"), channels("squares"), channels("gamma"),
                           channels("beta"), in.epsilon, graph_.tensor(s_.n * s_.h * s_.w),
                           fe::graph::BN_finalize_attributes().set_previous_running_stats(
                               in.mean, in.variance, in.momentum));
    output_channels({scale, shift, mean, inv_std, next_mean, next_variance});
  }
  Tensor batchnorm() {
    Running in = running();
    auto [z, mean, inv_std, next_mean, next_variance] =
        graph_.batchnorm(y("y"), channels("gamma"), channels("beta"),
                         fe::graph::Batchnorm_attributes()
                             .set_epsilon(in.epsilon)
                             .set_previous_running_stats(in.mean, in.variance, in.momentum));
    output_channels({mean, inv_std, next_mean, next_variance});
    return z;
  }
  void batchnorm_add_relu() {
    const Tensor z = relu(pointwise(Mode::ADD, batchnorm(), y("residual")));
    output(z);
    output(pointwise(Mode::CMP_GT, z, graph_.tensor(0.0F)), Type::BOOLEAN);
  }

  // What batchnorm_gradient() reads of the forward pass.
  struct Statistics {
    Tensor y, gamma, mean, inv_std;
  };
  Statistics statistics() {
    return {y("y"), channels("gamma"), channels("mean"), channels("inv_std")};
  }
  void batchnorm_gradient(const Tensor& dz) { batchnorm_gradient(dz, statistics()); }
  void batchnorm_gradient(const Tensor& dz, Statistics in) {
    auto [dy, dgamma, dbeta] = graph_.batchnorm_backward(
        dz, in.y, in.gamma,
        fe::graph::Batchnorm_backward_attributes().set_saved_mean_and_inv_variance(in.mean,
                                                                                   in.inv_std));
    output(dy);
    output_channels({dgamma, dbeta});
  }
  void batchnorm_relu_gradient() {
    Statistics in = statistics();
    const Tensor normalized =
        graph_.batchnorm_inference(in.y, in.mean, in.inv_std, in.gamma, channels("beta"),
                                   fe::graph::Batchnorm_inference_attributes());
    const Tensor masked = pointwise(Mode::RELU_BWD, y("dz"), normalized);
    masked->set_data_type(type());
    batchnorm_gradient(masked, in);
  }
  void batchnorm_add_relu_gradient() {
    const Tensor mask = tensor("mask", s_.n, s_.out_channels, s_.h, s_.w, Type::BOOLEAN);
    const Tensor masked = pointwise(Mode::MUL, y("dz"), mask);
    output(masked);
    batchnorm_gradient(masked, statistics());
  }

  Graph& graph_;
  const GraphSpec& s_;
};

std::vector<fe::NumericalNote_t> refused_notes(Precision precision) {
  using Note = fe::NumericalNote_t;
  std::vector<Note> notes = {Note::REDUCED_PRECISION_REDUCTION, Note::NONDETERMINISTIC, Note::FFT,
                             Note::WINOGRAD};
  if (precision == Precision::kFp32) {
    notes.push_back(Note::TENSOR_CORE);
    notes.push_back(Note::DOWN_CONVERT_INPUTS);
  }
  return notes;
}

}  // namespace

struct CudnnGraph::Impl {
  Impl(const GraphSpec& s, const GpuDescription& gpu) : spec(s) {
    load_cudnn();
    auto properties = std::make_shared<fe::DeviceProperties>();
    check("device", properties->deserialize({gpu.json.begin(), gpu.json.end()}));
    graph.set_device_properties(properties)
        .set_sm_version(gpu.compute_capability)
        .set_io_data_type(element_type(spec.precision))
        .set_intermediate_data_type(Type::FLOAT)
        .set_compute_data_type(Type::FLOAT);
    Recorder(graph, spec).record();
    check("shapes", graph.validate());
    check("operations", graph.build_operation_graph());
    // The second list holds engines for what the first has none for.
    check("engines", graph.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}));
    graph.deselect_numeric_notes(refused_notes(spec.precision));
    check("engines", graph.check_support());
  }

  void check(const char* stage, fe::error_t error) const {
    if (error.is_good()) return;
    fail<DeviceError>("cuDNN: {}: {}: {}", spec.text(), stage, error.get_message());
  }

  // The heuristics' first engine of those that need not be compiled, else of those that do.
  void build(const Options& options) {
    std::vector<std::int64_t> to_compile;
    for (std::int64_t i = 0; i < graph.get_execution_plan_count(); ++i) {
      std::vector<fe::BehaviorNote_t> notes;
      check("notes", graph.get_behavior_notes_for_plan_at_index(i, notes));
      if (std::ranges::count(notes, fe::BehaviorNote_t::RUNTIME_COMPILATION) > 0) {
        to_compile.push_back(i);
      } else if (graph.build_plan_at_index(i).is_good()) {
        return take(i, PlanState::kFinal);
      }
    }
    graph.select_behavior_notes({fe::BehaviorNote_t::RUNTIME_COMPILATION});
    check("engines", graph.check_support());
    if (!options.compile) return;
    std::string refusal;
    for (const std::int64_t i : to_compile) {
      fe::error_t error = graph.build_plan_at_index(i);
      if (error.is_good()) return take(i, PlanState::kFinal);
      refusal = error.get_message();
      if (refusal.find("CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER") != std::string::npos) {
        return take(i, PlanState::kCompiled);
      }
    }
    fail<DeviceError>("cuDNN: {}: plan: {}", spec.text(), refusal);
  }

  void take(std::int64_t plan, PlanState reached) {
    state = reached;
    check("name", graph.get_plan_name_at_index(plan, engine));
    if (state == PlanState::kFinal) {
      check("workspace", graph.get_workspace_size_plan_at_index(plan, workspace_bytes));
    }
  }

  GraphSpec spec;
  Graph graph;
  PlanState state = PlanState::kAccepted;
  std::string engine;
  std::int64_t workspace_bytes = 0;
};

CudnnGraph::CudnnGraph(const GraphSpec& spec, const GpuDescription& gpu, Options options)
    : impl_(std::make_unique<Impl>(spec, gpu)) {
  impl_->build(options);
}
CudnnGraph::~CudnnGraph() = default;
CudnnGraph::CudnnGraph(CudnnGraph&&) noexcept = default;

PlanState CudnnGraph::state() const { return impl_->state; }
const std::string& CudnnGraph::engine() const { return impl_->engine; }
std::size_t CudnnGraph::workspace_bytes() const {
  return static_cast<std::size_t>(impl_->workspace_bytes);
}

}  // namespace rk
