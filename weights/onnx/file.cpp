#include "weights/onnx/file.h"

#include "engine/base/error.h"
#include "engine/base/integers.h"
#include "weights/architectures/registry.h"
#include "weights/foreign/model_text.h"
#include "weights/onnx/graph.h"
#include "weights/onnx/schema.h"

#include <cstring>
#include <utility>

namespace rk {
namespace {

constexpr std::int64_t kIrVersion = 8, kOperatorSet = 17;

constexpr float kGemEpsilon = 1e-6F;  // as in kernels/blocks/pool_kind.h
constexpr float kLeastNorm = 1e-12F;  // as in layers/l2norm.h

// The backbone's layers, normalising by the running statistics, one after the other: images
// [batch, 3, height, width] -> features before pooling [batch, C, h, w].
class LayersInGraph {
 public:
  LayersInGraph(OnnxGraph& graph, std::string images) : graph_(graph), images_(std::move(images)) {}

  std::string append(const Backbone& backbone) {
    for (const Layer& layer : backbone.layers()) {
      results_.push_back(std::visit([&](const auto& l) { return append(l); }, layer));
    }
    return results_.back();
  }

 private:
  const std::string& result(LayerId layer) const {
    return layer == kImages ? images_ : results_[at(layer)];
  }

  std::string append(const ConvBn& unit) {
    std::string y = graph_.convolution(result(unit.x), unit.convolution, unit.window);
    y = graph_.normalisation(y, unit.batchnorm, unit.epsilon);
    if (unit.residual) y = graph_.add(y, result(*unit.residual), unit.name + ".add");
    return unit.relu ? graph_.relu(y, unit.name) : y;
  }
  std::string append(const Pooling& pooling) {
    const std::string& x = result(pooling.x);
    return pooling.kind == Pooling::Kind::kMaximum
               ? graph_.max_pool(x, pooling.name, pooling.window)
               : graph_.average_pool(x, pooling.name, pooling.window);
  }
  std::string append(const Concatenation& concatenation) {
    std::vector<std::string> inputs;
    for (const LayerId input : concatenation.inputs) inputs.push_back(result(input));
    return graph_.concat(inputs, concatenation.name);
  }

  OnnxGraph& graph_;
  std::string images_;
  std::vector<std::string> results_;  // of the layers so far
};

// [batch, C, h, w] -> [batch, C]
std::string pooled(OnnxGraph& graph, const std::string& x, const ModelDescription& model) {
  if (model.pool == "gem") {
    const double p = model.gem_p;
    graph.scalar("gem.least", kGemEpsilon);
    graph.scalar("gem.p", static_cast<float>(p));
    graph.scalar("gem.1/p", static_cast<float>(1 / p));
    graph.node("Clip", "gem.clipped", {x, "gem.least"});
    // Powers of the values themselves may overflow or vanish in float.
    graph.node("GlobalMaxPool", "gem.top", {"gem.clipped"});
    graph.node("Div", "gem.shares", {"gem.clipped", "gem.top"});
    graph.node("Pow", "gem.powers", {"gem.shares", "gem.p"});
    graph.node("GlobalAveragePool", "gem.mean", {"gem.powers"});
    graph.node("Pow", "gem.share", {"gem.mean", "gem.1/p"});
    graph.node("Mul", "pool", {"gem.share", "gem.top"});
  } else {
    graph.node(model.pool == "max" ? "GlobalMaxPool" : "GlobalAveragePool", "pool", {x});
  }
  OnnxGraph::integer(graph.node("Flatten", "features", {"pool"}), "axis", 1);
  return "features";
}

// Scales rows to unit length.
void normalise(OnnxGraph& graph, const std::string& x, const std::string& name) {
  onnx::NodeProto& norm = graph.node("ReduceL2", "norm", {x});
  OnnxGraph::integers(norm, "axes", {1});
  OnnxGraph::integer(norm, "keepdims", 1);
  graph.scalar("norm.least", kLeastNorm);
  graph.node("Clip", "norm.clipped", {"norm", "norm.least"});
  graph.node("Div", name, {x, "norm.clipped"});
}

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

std::vector<std::byte> onnx_bytes(const NetworkWeights& weights, std::size_t most) {
  const ModelDescription& model = weights.model;
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
  OnnxGraph layers(weights, graph);
  std::string x = LayersInGraph(layers, "images").append(backbone(model.arch, model.stride_in_1x1));
  x = pooled(layers, x, model);
  if (embedding != nullptr) x = layers.linear(x, "embedding");
  normalise(layers, x, "embeddings");
  const std::size_t size = file.ByteSizeLong();
  if (size > most) {
    fail<UsageError>("--to onnx: takes {} MiB, and one ONNX file holds {}; write safetensors",
                     size >> 20, (most >> 20) + 1);
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
  if (file.size() > kMostOnnxBytes ||
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
