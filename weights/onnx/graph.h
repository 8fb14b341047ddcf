// Builds an ONNX graph from the layers of networks. Images are [batch, C, height, width]. The name
// of a layer is the name of its node and of its output tensor, and each function returns it; the
// weights that a layer uses are stored in the graph under their own names, bit for bit.
#pragma once

#include "weights/architectures/backbone.h"
#include "weights/foreign/network_weights.h"

#include <cstdint>

namespace onnx {
class GraphProto;
class NodeProto;
}  // namespace onnx

namespace rk {

class OnnxGraph {
 public:
  OnnxGraph(const NetworkWeights& weights, onnx::GraphProto& graph)
      : weights_(weights), graph_(graph) {}

  // Uses <name>.weight, without a bias.
  std::string convolution(const std::string& x, const std::string& name, const Window& window);
  // Uses <name>.weight, .bias, .running_mean and .running_var.
  std::string normalisation(const std::string& x, const std::string& name, double epsilon);
  // [batch, C] -> [batch, D] with <name>.weight and .bias.
  std::string linear(const std::string& x, const std::string& name);
  std::string relu(const std::string& x, const std::string& name);
  std::string add(const std::string& a, const std::string& b, const std::string& name);
  // Concatenates along the channels.
  std::string concat(const std::vector<std::string>& inputs, const std::string& name);
  std::string max_pool(const std::string& x, const std::string& name, const Window& window);
  // Padding counts in the average, as zeros.
  std::string average_pool(const std::string& x, const std::string& name, const Window& window);

  // Adds any other operator; the caller sets its attributes.
  onnx::NodeProto& node(const char* op, const std::string& name,
                        const std::vector<std::string>& inputs);
  void scalar(const std::string& name, float value);
  static void integer(onnx::NodeProto& node, const char* name, std::int64_t value);
  static void integers(onnx::NodeProto& node, const char* name,
                       const std::vector<std::int64_t>& values);

 private:
  void take(const std::string& name);
  void tensor(const std::string& name, const std::vector<std::int64_t>& dims,
              std::span<const float> values);
  static void steps(onnx::NodeProto& node, const Window& window);
  onnx::NodeProto& pool(const char* op, const std::string& x, const std::string& name,
                        const Window& window);

  const NetworkWeights& weights_;
  onnx::GraphProto& graph_;
};

}  // namespace rk
