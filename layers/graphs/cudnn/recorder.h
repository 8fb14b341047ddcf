// Translates a graph into cuDNN frontend calls in one walk over its operations. Only
// layers/graphs/cudnn/candidates.h includes this file.
#pragma once

#include "layers/graphs/engines.h"
#include "layers/graphs/graph.h"

#include <cudnn_frontend.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace rk::cudnn {

namespace fe = cudnn_frontend;
using Type = fe::DataType_t;

inline Type element_type(DType type) {
  switch (type) {
    case DType::kFloat16: return Type::HALF;
    case DType::kBfloat16: return Type::BFLOAT16;
    case DType::kUint8: return Type::BOOLEAN;  // bits
    default: return Type::FLOAT;
  }
}

// Dimensions are passed as (N, C, H, W), with strides for NHWC.
class Recorder {
 public:
  Recorder(fe::graph::Graph& frontend, const Graph& graph)
      : frontend_(frontend), graph_(graph), tensors_(graph.tensors().size()) {}

  void record() {
    for_each([&](Graph::Value value, const Graph::Tensor& tensor) {
      if (tensor.role != GraphRole::kNone && !tensor.written) at(value) = input(value);
    });
    for (const Graph::Operation& operation : graph_.operations()) record(operation);
    for_each([&](Graph::Value value, const Graph::Tensor& tensor) {
      if (!tensor.written) return;
      at(value)->set_output(true).set_data_type(element_type(tensor.type)).set_uid(place_of(value));
      // The frontend itself makes the other outputs dense.
      if (tensor.row_stride > 0) {
        at(value)->set_dim(dims(tensor.shape)).set_stride(strides(tensor));
      }
    });
  }

  // The numbers that operations read besides their tensors, by uid. By default the frontend (1.15
  // to 1.17) adds to a run's places the addresses of copies that are freed when the run returns,
  // and the next run on the same places reads them.
  using Constants = std::map<std::int64_t, float>;
  Constants constants() && { return std::move(constants_); }

 private:
  using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;
  using Mode = fe::PointwiseMode_t;
  using Op = Graph::Op;

  template <class F> void for_each(F&& f) {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      f(static_cast<Graph::Value>(i), graph_.tensors()[i]);
    }
  }
  Tensor& at(Graph::Value value) { return tensors_[static_cast<std::size_t>(value)]; }

  // For an image (N, H, W, C), a weight (O, H, W, I) or a vector over channels.
  static std::vector<std::int64_t> dims(const Shape& shape) {
    if (shape.rank() == 1) return {1, shape[0], 1, 1};
    return {shape[0], shape[3], shape[1], shape[2]};
  }
  static std::vector<std::int64_t> strides(const Graph::Tensor& tensor) {
    const std::vector<std::int64_t> d = dims(tensor.shape);
    const std::int64_t row = tensor.row_stride > 0 ? tensor.row_stride : d[1];
    return {row * d[2] * d[3], 1, row * d[3], row};
  }
  Tensor input(Graph::Value value) {
    const Graph::Tensor& tensor = graph_.tensor(value);
    return frontend_.tensor(fe::graph::Tensor_attributes()
                                .set_name(std::string(name_of(tensor.role)))
                                .set_dim(dims(tensor.shape))
                                .set_stride(strides(tensor))
                                .set_data_type(element_type(tensor.type))
                                .set_uid(place_of(value)));
  }
  Tensor constant(double value) {
    const auto number = static_cast<float>(value);
    const std::int64_t id =
        place_of(static_cast<Graph::Value>(tensors_.size() + constants_.size()));
    constants_.emplace(id, number);
    Tensor t = frontend_.tensor(number);
    t->set_uid(id);
    return t;
  }

  static fe::graph::Pointwise_attributes pointwise(Mode mode) {
    return fe::graph::Pointwise_attributes().set_mode(mode).set_compute_data_type(Type::FLOAT);
  }
  // A gradient masked by a ReLU: cuDNN has the operations that follow only for images in their own
  // type.
  Tensor masked(Mode mode, const Tensor& dy, const Tensor& by) {
    Tensor t = frontend_.pointwise(dy, by, pointwise(mode));
    t->set_data_type(element_type(image_type(graph_.precision())));
    return t;
  }
  template <class Attributes> static Attributes window(const Graph::Operation& operation) {
    const auto& [stride, padding] = operation.window;
    return Attributes()
        .set_padding({padding[0], padding[1]})
        .set_stride({stride[0], stride[1]})
        .set_dilation({1, 1});
  }

  void record(const Graph::Operation& operation) {
    std::vector<Tensor> in;
    for (const Graph::Value value : operation.inputs) in.push_back(at(value));
    std::vector<Tensor> out = results(operation, in);
    for (std::size_t i = 0; i < out.size(); ++i) at(operation.outputs[i]) = std::move(out[i]);
  }

  std::vector<Tensor> results(const Graph::Operation& operation, const std::vector<Tensor>& in) {
    switch (operation.op) {
      case Op::kConv:
        return {frontend_.conv_fprop(in[0], in[1],
                                     window<fe::graph::Conv_fprop_attributes>(operation))};
      case Op::kDgrad:
        return {sized(operation,
                      frontend_.conv_dgrad(in[0], in[1],
                                           window<fe::graph::Conv_dgrad_attributes>(operation)))};
      case Op::kWgrad:
        return {sized(operation,
                      frontend_.conv_wgrad(in[0], in[1],
                                           window<fe::graph::Conv_wgrad_attributes>(operation)))};
      case Op::kBatchNorm: return batchnorm(operation, in);
      case Op::kScale: return {frontend_.pointwise(in[0], in[1], pointwise(Mode::MUL))};
      case Op::kBias:
      case Op::kAdd: return {frontend_.pointwise(in[0], in[1], pointwise(Mode::ADD))};
      case Op::kRelu: return {frontend_.pointwise(in[0], pointwise(Mode::RELU_FWD))};
      case Op::kChannelSums: {
        auto [sum, squares] = frontend_.genstats(
            in[0], fe::graph::Genstats_attributes().set_compute_data_type(Type::FLOAT));
        return {sum, squares};
      }
      case Op::kPositive: return {frontend_.pointwise(in[0], constant(0), pointwise(Mode::CMP_GT))};
      case Op::kNormalize:
        return {frontend_.batchnorm_inference(in[0], in[3], in[4], in[1], in[2],
                                              fe::graph::Batchnorm_inference_attributes())};
      case Op::kReluGradient: return {masked(Mode::RELU_BWD, in[0], in[1])};
      case Op::kMask: return {masked(Mode::MUL, in[0], in[1])};
      case Op::kMaskedSums: return masked_sums(in);
      case Op::kBatchNormGradient: {
        const auto attributes =
            fe::graph::Batchnorm_backward_attributes().set_saved_mean_and_inv_variance(in[3],
                                                                                       in[4]);
        auto [dx, dgamma, dbeta] = frontend_.batchnorm_backward(in[0], in[1], in[2], attributes);
        return {dx, dgamma, dbeta};
      }
    }
    return {};
  }

  // A gradient: its size does not follow from its inputs.
  Tensor sized(const Graph::Operation& operation, Tensor gradient) {
    gradient->set_dim(dims(graph_.tensor(operation.outputs[0]).shape));
    return gradient;
  }

  // cuDNN knows this normalisation only as separate operations.
  std::vector<Tensor> masked_sums(const std::vector<Tensor>& in) {
    const Tensor &x = in[1], &gamma = in[2], &beta = in[3], &mean = in[4], &inv_std = in[5];
    Tensor y = frontend_.pointwise(x, mean, pointwise(Mode::SUB));
    y = frontend_.pointwise(y, inv_std, pointwise(Mode::MUL));
    y = frontend_.pointwise(y, gamma, pointwise(Mode::MUL));
    y = frontend_.pointwise(y, beta, pointwise(Mode::ADD));
    if (in.size() > 6) y = frontend_.pointwise(y, in[6], pointwise(Mode::ADD));
    const Tensor dy = masked(Mode::RELU_BWD, in[0], y);
    auto [dgamma, dbeta, scale_dy, scale_x, shift] =
        frontend_.dbn_weight(dy, x, mean, inv_std, gamma, fe::graph::DBN_weight_attributes());
    return {dy, dgamma, dbeta, scale_dy, scale_x, shift};
  }

  std::vector<Tensor> batchnorm(const Graph::Operation& operation, const std::vector<Tensor>& in) {
    Tensor running_mean = in[3], running_variance = in[4];
    Tensor epsilon = constant(operation.epsilon), momentum = constant(operation.momentum);
    auto [y, mean, inv_std, next_mean, next_variance] = frontend_.batchnorm(
        in[0], in[1], in[2],
        fe::graph::Batchnorm_attributes().set_epsilon(epsilon).set_previous_running_stats(
            running_mean, running_variance, momentum));
    return {y, mean, inv_std, next_mean, next_variance};
  }

  fe::graph::Graph& frontend_;
  const Graph& graph_;
  std::vector<Tensor> tensors_;  // by value
  Constants constants_;
};

}  // namespace rk::cudnn
