#include "weights/onnx/graph.h"

#include "engine/base/error.h"
#include "weights/onnx/schema.h"

namespace rk {

std::string OnnxGraph::convolution(const std::string& x, const std::string& name,
                                   const Window& window) {
  take(name + ".weight");
  steps(node("Conv", name, {x, name + ".weight"}), window);
  return name;
}

std::string OnnxGraph::normalisation(const std::string& x, const std::string& name,
                                     double epsilon) {
  std::vector<std::string> inputs = {x};
  for (const char* part : {".weight", ".bias", ".running_mean", ".running_var"}) {
    inputs.push_back(name + part);
    take(inputs.back());
  }
  onnx::AttributeProto& attribute = *node("BatchNormalization", name, inputs).add_attribute();
  attribute.set_name("epsilon");
  attribute.set_type(onnx::AttributeProto::FLOAT);
  attribute.set_f(static_cast<float>(epsilon));
  return name;
}

std::string OnnxGraph::linear(const std::string& x, const std::string& name) {
  take(name + ".weight");
  take(name + ".bias");
  integer(node("Gemm", name, {x, name + ".weight", name + ".bias"}), "transB", 1);
  return name;
}

std::string OnnxGraph::relu(const std::string& x, const std::string& name) {
  node("Relu", name, {x});
  return name;
}

std::string OnnxGraph::add(const std::string& a, const std::string& b, const std::string& name) {
  node("Add", name, {a, b});
  return name;
}

std::string OnnxGraph::concat(const std::vector<std::string>& inputs, const std::string& name) {
  integer(node("Concat", name, inputs), "axis", 1);
  return name;
}

std::string OnnxGraph::max_pool(const std::string& x, const std::string& name,
                                const Window& window) {
  pool("MaxPool", x, name, window);
  return name;
}

std::string OnnxGraph::average_pool(const std::string& x, const std::string& name,
                                    const Window& window) {
  integer(pool("AveragePool", x, name, window), "count_include_pad", 1);
  return name;
}

void OnnxGraph::steps(onnx::NodeProto& node, const Window& window) {
  const auto [above, left] = window.padding;
  integers(node, "kernel_shape", {window.size[0], window.size[1]});
  integers(node, "pads", {above, left, above, left});
  integers(node, "strides", {window.stride, window.stride});
}

onnx::NodeProto& OnnxGraph::pool(const char* op, const std::string& x, const std::string& name,
                                 const Window& window) {
  onnx::NodeProto& out = node(op, name, {x});
  steps(out, window);
  if (window.ceil_mode) integer(out, "ceil_mode", 1);
  return out;
}

onnx::NodeProto& OnnxGraph::node(const char* op, const std::string& name,
                                 const std::vector<std::string>& inputs) {
  onnx::NodeProto& out = *graph_.add_node();
  out.set_op_type(op);
  out.set_name(name);
  for (const std::string& input : inputs) out.add_input(input);
  out.add_output(name);
  return out;
}

void OnnxGraph::scalar(const std::string& name, float value) { tensor(name, {}, {&value, 1}); }

void OnnxGraph::integer(onnx::NodeProto& node, const char* name, std::int64_t value) {
  onnx::AttributeProto& out = *node.add_attribute();
  out.set_name(name);
  out.set_type(onnx::AttributeProto::INT);
  out.set_i(value);
}

void OnnxGraph::integers(onnx::NodeProto& node, const char* name,
                         const std::vector<std::int64_t>& values) {
  onnx::AttributeProto& out = *node.add_attribute();
  out.set_name(name);
  out.set_type(onnx::AttributeProto::INTS);
  for (const std::int64_t v : values) out.add_ints(v);
}

void OnnxGraph::take(const std::string& name) {
  const NetworkWeights::Tensor* found = weights_.find(name);
  expect(found != nullptr, "[onnx] expected {} among the weights", name);
  tensor(name, found->dims, found->values);
}

void OnnxGraph::tensor(const std::string& name, const std::vector<std::int64_t>& dims,
                       std::span<const float> values) {
  onnx::TensorProto& out = *graph_.add_initializer();
  out.set_name(name);
  out.set_data_type(onnx::TensorProto::FLOAT);
  for (const std::int64_t d : dims) out.add_dims(d);
  out.set_raw_data(values.data(), values.size_bytes());
}

}  // namespace rk
