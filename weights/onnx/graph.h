// An ONNX graph in the making, in the layers that networks are made of. Images are
// [batch, C, height, width]. A layer's name is that of its node and of the tensor that this writes,
// which is what each returns; what it takes of the weights stands in the graph under the weights'
// own names, bit for bit.
#pragma once

#include "weights/foreign/network_weights.h"

#include <array>

namespace onnx {
class GraphProto;
class NodeProto;
}  // namespace onnx

namespace rk {

// How a convolution's kernel, whose size its weights say, goes over an image.
struct OnnxSteps {
  std::int64_t stride = 1;
  bool padded = true;  // by half the kernel on every side, so that stride 1 keeps the size
};

struct OnnxWindow {
  std::int64_t side = 3, stride = 2, padding = 0;
  bool ceil_mode = false;  // the size of the result is rounded up
};

class OnnxGraph {
 public:
  OnnxGraph(const NetworkWeights& weights, onnx::GraphProto& graph)
      : weights_(weights), graph_(graph) {}

  const ModelDescription& model() const { return weights_.model; }
  // Is there such a tensor among the weights?
  bool has(const std::string& tensor) const { return weights_.find(tensor) != nullptr; }

  // By <name>.weight, without a bias.
  std::string convolution(const std::string& x, const std::string& name,
                          const OnnxSteps& steps = {});
  // By <name>.weight, .bias, .running_mean and .running_var.
  std::string normalisation(const std::string& x, const std::string& name, double epsilon);
  // [batch, C] -> [batch, D] by <name>.weight and .bias.
  std::string linear(const std::string& x, const std::string& name);
  std::string relu(const std::string& x, const std::string& name);
  std::string add(const std::string& a, const std::string& b, const std::string& name);
  // Along the channels.
  std::string concat(const std::vector<std::string>& inputs, const std::string& name);
  std::string max_pool(const std::string& x, const std::string& name, const OnnxWindow& window);
  // Padding counts, as zeros.
  std::string average_pool(const std::string& x, const std::string& name, const OnnxWindow& window);

  // Any other operator, whose attributes are the caller's to set.
  onnx::NodeProto& node(const char* op, const std::string& name,
                        const std::vector<std::string>& inputs);
  void scalar(const std::string& name, float value);
  static void integer(onnx::NodeProto& node, const char* name, std::int64_t value);
  static void integers(onnx::NodeProto& node, const char* name,
                       const std::vector<std::int64_t>& values);

 private:
  const NetworkWeights::Tensor& take(const std::string& name);
  void tensor(const std::string& name, const std::vector<std::int64_t>& dims,
              std::span<const float> values);
  onnx::NodeProto& pool(const char* op, const std::string& x, const std::string& name,
                        const OnnxWindow& window);

  const NetworkWeights& weights_;
  onnx::GraphProto& graph_;
};

}  // namespace rk
