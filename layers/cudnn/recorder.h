// A graph in the words of cuDNN's frontend: the part of gpu_graph_cudnn.cpp, which alone includes
// this, that says what each kind computes.
#pragma once

#include "layers/graphs/graph.h"

#include <cudnn_frontend.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <unordered_map>

namespace rk::cudnn {

namespace fe = cudnn_frontend;
using fe::graph::Graph;
using Type = fe::DataType_t;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;
using Mode = fe::PointwiseMode_t;

inline Type element_type(Precision precision) {
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

  static std::int64_t uid(GraphRole role) { return static_cast<std::int64_t>(role) + 1; }

  // Puts the numbers that a kind's graphs read beside their tensors among the places of a run.
  // Left to itself the frontend (1.15 to 1.17) adds the addresses of copies that are gone when the
  // run returns, and the next run on the same places reads them.
  static void add_constants(GraphKind kind, std::unordered_map<std::int64_t, void*>& places) {
    switch (kind) {
      case GraphKind::kBatchNormAddRelu: add_constant(kZero, places); [[fallthrough]];
      case GraphKind::kBatchNorm:
      case GraphKind::kBatchNormRelu:
        add_constant(kEpsilon, places);
        add_constant(kMomentum, places);
        return;
      default: return;
    }
  }

  void record() {
    switch (s_.kind) {
      case GraphKind::kConvolution: output(forward(), GraphRole::kY); return;
      case GraphKind::kConvolutionSums: return convolution_sums();
      case GraphKind::kConvolutionBias: output(biased(forward()), GraphRole::kY); return;
      case GraphKind::kConvolutionBiasRelu: output(relu(biased(forward())), GraphRole::kY); return;
      case GraphKind::kConvolutionBiasAddRelu:
        output(relu(biased(pointwise(Mode::ADD, forward(), y("residual", GraphRole::kResidual)))),
               GraphRole::kY);
        return;
      case GraphKind::kInputGradient: output(input_gradient(), GraphRole::kDx); return;
      case GraphKind::kInputGradientAdd: output(with_others(), GraphRole::kDx); return;
      case GraphKind::kInputGradientRelu: output(masked(input_gradient()), GraphRole::kDx); return;
      case GraphKind::kInputGradientAddRelu: output(masked(with_others()), GraphRole::kDx); return;
      case GraphKind::kWeightGradient: return weight_gradient();
      case GraphKind::kBatchNorm: output(batchnorm(), GraphRole::kY); return;
      case GraphKind::kBatchNormRelu: output(relu(batchnorm()), GraphRole::kY); return;
      case GraphKind::kBatchNormAddRelu: return batchnorm_add_relu();
      case GraphKind::kBatchNormGradient: return batchnorm_gradient(y("dy", GraphRole::kDy));
      case GraphKind::kBatchNormReluGradient: return batchnorm_relu_gradient();
      case GraphKind::kBatchNormAddReluGradient: return batchnorm_add_relu_gradient();
    }
  }

 private:
  // In the order of their uids, which follow those of the tensors.
  enum Constant : std::uint8_t { kEpsilon, kMomentum, kZero };
  static constexpr std::array kConstants = {static_cast<float>(kGraphEpsilon),
                                            static_cast<float>(kGraphMomentum), 0.0F};
  static std::int64_t uid(Constant constant) { return uid(GraphRole::kDBeta) + 1 + constant; }
  static void add_constant(Constant constant, std::unordered_map<std::int64_t, void*>& places) {
    places[uid(constant)] = const_cast<float*>(&kConstants[constant]);
  }
  Tensor constant(Constant constant) {
    Tensor t = graph_.tensor(kConstants[constant]);
    t->set_uid(uid(constant));
    return t;
  }

  Tensor tensor(const char* name, std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w,
                Type type, GraphRole role) {
    const auto attributes = fe::graph::Tensor_attributes()
                                .set_name(name)
                                .set_dim({n, c, h, w})
                                .set_stride({c * h * w, 1, c * w, c})
                                .set_data_type(type)
                                .set_uid(uid(role));
    return graph_.tensor(attributes);
  }
  Type type() const { return element_type(s_.precision); }
  Tensor x(const char* name, GraphRole role) {
    return tensor(name, s_.n, s_.c, s_.h, s_.w, type(), role);
  }
  Tensor x() { return x("x", GraphRole::kX); }
  Tensor y(const char* name, GraphRole role) {
    return tensor(name, s_.n, s_.out_channels, s_.out_h(), s_.out_w(), type(), role);
  }
  Tensor w() {
    return tensor("w", s_.out_channels, s_.c, s_.kernel[0], s_.kernel[1], type(), GraphRole::kW);
  }
  Tensor channels(const char* name, GraphRole role) {
    return tensor(name, 1, s_.out_channels, 1, 1, Type::FLOAT, role);
  }

  void output(const Tensor& t, GraphRole role, Type type) {
    t->set_output(true).set_data_type(type).set_uid(uid(role));
  }
  void output(const Tensor& t, GraphRole role) { output(t, role, type()); }
  void output_channels(const Tensor& t, GraphRole role) { output(t, role, Type::FLOAT); }

  static fe::graph::Pointwise_attributes operation(Mode mode) {
    return fe::graph::Pointwise_attributes().set_mode(mode).set_compute_data_type(Type::FLOAT);
  }
  Tensor pointwise(Mode mode, const Tensor& a, const Tensor& b) {
    return graph_.pointwise(a, b, operation(mode));
  }
  Tensor relu(const Tensor& t) { return graph_.pointwise(t, operation(Mode::RELU_FWD)); }

  template <class Attributes> Attributes geometry() const {
    return Attributes()
        .set_padding({s_.padding[0], s_.padding[1]})
        .set_stride({s_.stride[0], s_.stride[1]})
        .set_dilation({1, 1});
  }
  Tensor forward() {
    return graph_.conv_fprop(x(), w(), geometry<fe::graph::Conv_fprop_attributes>());
  }
  // The bias in the precision's type, and added last: so the library has these graphs ready made;
  // with a float32 bias, or the residual behind it, it compiles a kernel for each.
  Tensor biased(const Tensor& t) {
    return pointwise(Mode::ADD, t, tensor("b", 1, s_.out_channels, 1, 1, type(), GraphRole::kBias));
  }
  Tensor input_gradient() {
    Tensor dx = graph_.conv_dgrad(y("dy", GraphRole::kDy), w(),
                                  geometry<fe::graph::Conv_dgrad_attributes>());
    dx->set_dim({s_.n, s_.c, s_.h, s_.w});
    return dx;
  }
  Tensor with_others() {
    return pointwise(Mode::ADD, input_gradient(), x("others", GraphRole::kOthers));
  }
  Tensor masked(const Tensor& t) { return pointwise(Mode::RELU_BWD, t, x()); }
  void weight_gradient() {
    Tensor dw = graph_.conv_wgrad(y("dy", GraphRole::kDy), x(),
                                  geometry<fe::graph::Conv_wgrad_attributes>());
    dw->set_dim({s_.out_channels, s_.c, s_.kernel[0], s_.kernel[1]});
    output(dw, GraphRole::kDw);
  }

  void convolution_sums() {
    const Tensor result = forward();
    output(result, GraphRole::kY);
    auto [sum, squares] = graph_.genstats(
        result, fe::graph::Genstats_attributes().set_compute_data_type(Type::FLOAT));
    output_channels(sum, GraphRole::kSum);
    output_channels(squares, GraphRole::kSquares);
  }

  // Its input has the shape of y.
  Tensor batchnorm_input() { return y("x", GraphRole::kX); }
  Tensor batchnorm() {
    Tensor running_mean = channels("running_mean", GraphRole::kRunningMean);
    Tensor running_variance = channels("running_var", GraphRole::kRunningVariance);
    Tensor epsilon = constant(kEpsilon);
    Tensor momentum = constant(kMomentum);
    auto [result, mean, inv_std, next_mean, next_variance] = graph_.batchnorm(
        batchnorm_input(), channels("gamma", GraphRole::kGamma), channels("beta", GraphRole::kBeta),
        fe::graph::Batchnorm_attributes().set_epsilon(epsilon).set_previous_running_stats(
            running_mean, running_variance, momentum));
    output_channels(mean, GraphRole::kMean);
    output_channels(inv_std, GraphRole::kInvStd);
    output_channels(next_mean, GraphRole::kNextMean);
    output_channels(next_variance, GraphRole::kNextVariance);
    return result;
  }
  void batchnorm_add_relu() {
    const Tensor result =
        relu(pointwise(Mode::ADD, batchnorm(), y("residual", GraphRole::kResidual)));
    output(result, GraphRole::kY);
    output(pointwise(Mode::CMP_GT, result, constant(kZero)), GraphRole::kSigns, Type::BOOLEAN);
  }

  // What batchnorm_gradient() reads of the forward pass.
  struct Statistics {
    Tensor x, gamma, mean, inv_std;
  };
  Statistics statistics() {
    return {batchnorm_input(), channels("gamma", GraphRole::kGamma),
            channels("mean", GraphRole::kMean), channels("inv_std", GraphRole::kInvStd)};
  }
  void batchnorm_gradient(const Tensor& dy) { batchnorm_gradient(dy, statistics()); }
  void batchnorm_gradient(const Tensor& dy, const Statistics& in) {
    auto [dx, dgamma, dbeta] = graph_.batchnorm_backward(
        dy, in.x, in.gamma,
        fe::graph::Batchnorm_backward_attributes().set_saved_mean_and_inv_variance(in.mean,
                                                                                   in.inv_std));
    output(dx, GraphRole::kDx);
    output_channels(dgamma, GraphRole::kDGamma);
    output_channels(dbeta, GraphRole::kDBeta);
  }
  void batchnorm_relu_gradient() {
    Statistics in = statistics();
    const Tensor normalized = graph_.batchnorm_inference(
        in.x, in.mean, in.inv_std, in.gamma, channels("beta", GraphRole::kBeta),
        fe::graph::Batchnorm_inference_attributes());
    const Tensor masked = pointwise(Mode::RELU_BWD, y("dy", GraphRole::kDy), normalized);
    masked->set_data_type(type());
    batchnorm_gradient(masked, in);
  }
  void batchnorm_add_relu_gradient() {
    const Tensor mask =
        tensor("mask", s_.n, s_.out_channels, s_.h, s_.w, Type::BOOLEAN, GraphRole::kSigns);
    const Tensor masked = pointwise(Mode::MUL, y("dy", GraphRole::kDy), mask);
    output(masked, GraphRole::kMaskedDy);
    batchnorm_gradient(masked, statistics());
  }

  Graph& graph_;
  const GraphSpec& s_;
};

}  // namespace rk::cudnn
