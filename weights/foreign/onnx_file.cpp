#include "weights/foreign/onnx_file.h"

#include "engine/base/error.h"
#include "weights/foreign/model_text.h"
#include "weights/network_tensors.h"

// As Debian builds the library.
#define ONNX_ML 1
#define ONNX_NAMESPACE onnx
#include <onnx/onnx_pb.h>

#include <cstring>
#include <limits>

namespace rk {
namespace {

constexpr std::int64_t kIrVersion = 8, kOperatorSet = 17;
constexpr std::size_t kMostBytes = std::numeric_limits<std::int32_t>::max();  // of protobuf
constexpr double kBatchNormEpsilon = 1e-5;  // as layers/batchnorm.h
constexpr float kGemEpsilon = 1e-6F;        // as layers/pool.h
constexpr float kLeastNorm = 1e-12F;        // as layers/l2norm.h

// Every node writes one tensor, called like the node.
class Graph {
 public:
  explicit Graph(onnx::GraphProto& graph) : graph_(graph) {}

  void tensor(const std::string& name, const std::vector<std::int64_t>& dims,
              std::span<const float> values) {
    onnx::TensorProto& out = *graph_.add_initializer();
    out.set_name(name);
    out.set_data_type(onnx::TensorProto::FLOAT);
    for (const std::int64_t d : dims) out.add_dims(d);
    out.set_raw_data(values.data(), values.size_bytes());
  }
  void scalar(const std::string& name, float value) { tensor(name, {}, {&value, 1}); }

  onnx::NodeProto& node(const char* op, const std::string& name,
                        const std::vector<std::string>& inputs) {
    onnx::NodeProto& out = *graph_.add_node();
    out.set_op_type(op);
    out.set_name(name);
    for (const std::string& input : inputs) out.add_input(input);
    out.add_output(name);
    return out;
  }

  static void integers(onnx::NodeProto& node, const char* name,
                       std::initializer_list<std::int64_t> values) {
    onnx::AttributeProto& out = *node.add_attribute();
    out.set_name(name);
    out.set_type(onnx::AttributeProto::INTS);
    for (const std::int64_t v : values) out.add_ints(v);
  }
  static void integer(onnx::NodeProto& node, const char* name, std::int64_t value) {
    onnx::AttributeProto& out = *node.add_attribute();
    out.set_name(name);
    out.set_type(onnx::AttributeProto::INT);
    out.set_i(value);
  }
  static void real(onnx::NodeProto& node, const char* name, double value) {
    onnx::AttributeProto& out = *node.add_attribute();
    out.set_name(name);
    out.set_type(onnx::AttributeProto::FLOAT);
    out.set_f(static_cast<float>(value));
  }

 private:
  onnx::GraphProto& graph_;
};

// As layers/networks/resnet.h builds it.
class ResNetGraph {
 public:
  ResNetGraph(const NetworkWeights& weights, onnx::GraphProto& graph)
      : weights_(weights), graph_(graph) {}

  void build() {
    const bool small_images = weights_.model.arch == "resnet20";
    std::string x = convolution("images", "conv1", small_images ? 1 : 2);
    x = relu(normalisation(x, "bn1"), "relu");
    if (!small_images) x = max_pool(x);
    for (int stage = 1; stage <= 4; ++stage) {
      for (int block = 0;; ++block) {
        const std::string name = fmt::format("layer{}.{}", stage, block);
        if (weights_.find(name + ".conv1.weight") == nullptr) break;
        x = residual_block(x, name, stage > 1 && block == 0 ? 2 : 1);
      }
    }
    x = pooled(x);
    if (weights_.find("embedding.weight") != nullptr) x = embedding_layer(x);
    onnx::NodeProto& norm = graph_.node("ReduceL2", "norm", {x});
    Graph::integers(norm, "axes", {1});
    Graph::integer(norm, "keepdims", 1);
    graph_.scalar("norm.least", kLeastNorm);
    graph_.node("Clip", "norm.clipped", {"norm", "norm.least"});
    graph_.node("Div", "embeddings", {x, "norm.clipped"});
  }

 private:
  const NetworkWeights::Tensor& take(const std::string& name) {
    const NetworkWeights::Tensor* tensor = weights_.find(name);
    expect(tensor != nullptr, "[onnx] expected {} among the weights", name);
    graph_.tensor(name, tensor->dims, tensor->values);
    return *tensor;
  }

  std::string convolution(const std::string& x, const std::string& name, std::int64_t stride) {
    const std::int64_t side = take(name + ".weight").dims[3], pad = side / 2;
    onnx::NodeProto& node = graph_.node("Conv", name, {x, name + ".weight"});
    Graph::integers(node, "kernel_shape", {side, side});
    Graph::integers(node, "pads", {pad, pad, pad, pad});
    Graph::integers(node, "strides", {stride, stride});
    return name;
  }

  std::string normalisation(const std::string& x, const std::string& name) {
    std::vector<std::string> inputs = {x};
    for (const char* part : {".weight", ".bias", ".running_mean", ".running_var"}) {
      inputs.push_back(name + part);
      take(inputs.back());
    }
    Graph::real(graph_.node("BatchNormalization", name, inputs), "epsilon", kBatchNormEpsilon);
    return name;
  }

  std::string relu(const std::string& x, const std::string& name) {
    graph_.node("Relu", name, {x});
    return name;
  }

  std::string max_pool(const std::string& x) {
    onnx::NodeProto& pool = graph_.node("MaxPool", "maxpool", {x});
    Graph::integers(pool, "kernel_shape", {3, 3});
    Graph::integers(pool, "pads", {1, 1, 1, 1});
    Graph::integers(pool, "strides", {2, 2});
    return "maxpool";
  }

  std::string residual_block(const std::string& x, const std::string& name, std::int64_t stride) {
    const bool bottleneck = weights_.find(name + ".conv3.weight") != nullptr;
    const int last = bottleneck ? 3 : 2;
    // The one that strides: the first of a basic block; of a bottleneck its 3x3, or its first 1x1.
    const int strided = bottleneck && !weights_.model.stride_in_1x1 ? 2 : 1;
    std::string y = x;
    for (int i = 1; i <= last; ++i) {
      y = convolution(y, fmt::format("{}.conv{}", name, i), i == strided ? stride : 1);
      y = normalisation(y, fmt::format("{}.bn{}", name, i));
      if (i < last) y = relu(y, fmt::format("{}.relu{}", name, i));
    }
    std::string skip = x;
    if (weights_.find(name + ".downsample.0.weight") != nullptr) {
      skip = normalisation(convolution(x, name + ".downsample.0", stride), name + ".downsample.1");
    }
    graph_.node("Add", name + ".add", {y, skip});
    return relu(name + ".add", name);
  }

  // [batch, C, H, W] -> [batch, C]
  std::string pooled(const std::string& x) {
    const std::string& kind = weights_.model.pool;
    if (kind == "gem") {
      const double p = weights_.model.gem_p;
      graph_.scalar("gem.least", kGemEpsilon);
      graph_.scalar("gem.p", static_cast<float>(p));
      graph_.scalar("gem.1/p", static_cast<float>(1 / p));
      graph_.node("Clip", "gem.clipped", {x, "gem.least"});
      graph_.node("Pow", "gem.powers", {"gem.clipped", "gem.p"});
      graph_.node("GlobalAveragePool", "gem.mean", {"gem.powers"});
      graph_.node("Pow", "pool", {"gem.mean", "gem.1/p"});
    } else {
      graph_.node(kind == "max" ? "GlobalMaxPool" : "GlobalAveragePool", "pool", {x});
    }
    Graph::integer(graph_.node("Flatten", "features", {"pool"}), "axis", 1);
    return "features";
  }

  std::string embedding_layer(const std::string& x) {
    take("embedding.weight");
    take("embedding.bias");
    Graph::integer(graph_.node("Gemm", "embedding", {x, "embedding.weight", "embedding.bias"}),
                   "transB", 1);
    return "embedding";
  }

  const NetworkWeights& weights_;
  Graph graph_;
};

// float32 [batch, dims...]
void describe(onnx::ValueInfoProto& value, const char* name,
              std::initializer_list<std::int64_t> dims) {
  value.set_name(name);
  onnx::TypeProto::Tensor& type = *value.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::TensorProto::FLOAT);
  type.mutable_shape()->add_dim()->set_dim_param("batch");
  for (const std::int64_t d : dims) type.mutable_shape()->add_dim()->set_dim_value(d);
}

}  // namespace

std::vector<std::byte> onnx_bytes(const NetworkWeights& weights) {
  const ModelDescription& model = weights.model;
  if (!model.arch.starts_with("resnet")) {
    fail<UsageError>("--to onnx: graphs of ResNets are written, not of {}; write safetensors",
                     model.arch);
  }
  const NetworkWeights::Tensor* embedding = weights.find("embedding.weight");
  onnx::ModelProto file;
  file.set_ir_version(kIrVersion);
  file.add_opset_import()->set_version(kOperatorSet);
  file.set_producer_name("Rankine");
  file.set_producer_version(RK_VERSION);
  file.set_doc_string("images: " + input_text(model));
  onnx::StringStringEntryProto& entry = *file.add_metadata_props();
  entry.set_key(kModelKey);
  entry.set_value(model_text(model));
  onnx::GraphProto& graph = *file.mutable_graph();
  graph.set_name(model.arch);
  describe(*graph.add_input(), "images", {3, model.crop, model.crop});
  describe(*graph.add_output(), "embeddings",
           {embedding != nullptr ? embedding->dims[0] : network_features(model.arch)});
  ResNetGraph(weights, graph).build();
  const std::size_t size = file.ByteSizeLong();
  if (size > kMostBytes) {
    fail<UsageError>("--to onnx: takes {} MiB, and one ONNX file holds 2048; write safetensors",
                     size >> 20);
  }
  std::vector<std::byte> bytes(size);
  expect(file.SerializeToArray(bytes.data(), static_cast<int>(size)), "[onnx] cannot serialize");
  return bytes;
}

void check_onnx(std::span<const std::byte> file, const NetworkWeights& weights,
                const std::string& name) {
  onnx::ModelProto model;
  const auto refuse = [&](const std::string& what) {
    fail<InputError>("{}: {} was not written as it was read; give another format with --to", name,
                     what);
  };
  if (file.size() > kMostBytes ||
      !model.ParseFromArray(file.data(), static_cast<int>(file.size()))) {
    refuse("the graph");
  }
  std::size_t found = 0;
  for (const onnx::TensorProto& tensor : model.graph().initializer()) {
    const NetworkWeights::Tensor* wanted = weights.find(tensor.name());
    if (wanted == nullptr) continue;
    ++found;
    const std::vector<std::int64_t> dims(tensor.dims().begin(), tensor.dims().end());
    const std::string& raw = tensor.raw_data();
    if (dims != wanted->dims || raw.size() != wanted->values.size_bytes() ||
        std::memcmp(raw.data(), wanted->values.data(), raw.size()) != 0) {
      refuse(tensor.name());
    }
  }
  std::size_t expected = 0;
  for (const NetworkWeights::Tensor& tensor : weights.tensors) {
    if (!tensor.dims.empty() && !tensor.name.starts_with("fc.")) ++expected;
  }
  if (found != expected) refuse(fmt::format("one of {} tensors", expected));
}

}  // namespace rk
