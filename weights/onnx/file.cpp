#include "weights/onnx/file.h"

#include "engine/base/error.h"
#include "weights/foreign/model_text.h"
#include "weights/network_tensors.h"
#include "weights/onnx/networks.h"
#include "weights/onnx/schema.h"

#include <cstring>
#include <limits>

namespace rk {
namespace {

constexpr std::int64_t kIrVersion = 8, kOperatorSet = 17;
constexpr std::size_t kMostBytes = std::numeric_limits<std::int32_t>::max();  // protobuf's limit

constexpr float kGemEpsilon = 1e-6F;  // as in layers/pool.h
constexpr float kLeastNorm = 1e-12F;  // as in layers/l2norm.h

std::string backbone(OnnxGraph& graph, const std::string& images) {
  const std::string& arch = graph.model().arch;
  if (arch == "googlenet") return onnx_googlenet(graph, images);
  if (arch == "inception_v3") return onnx_inception_v3(graph, images);
  expect(arch.starts_with("resnet"), "[onnx] expected a network with a graph, got {}", arch);
  return onnx_resnet(graph, images);
}

// [batch, C, h, w] -> [batch, C]
std::string pooled(OnnxGraph& graph, const std::string& x) {
  const std::string& kind = graph.model().pool;
  if (kind == "gem") {
    const double p = graph.model().gem_p;
    graph.scalar("gem.least", kGemEpsilon);
    graph.scalar("gem.p", static_cast<float>(p));
    graph.scalar("gem.1/p", static_cast<float>(1 / p));
    graph.node("Clip", "gem.clipped", {x, "gem.least"});
    graph.node("Pow", "gem.powers", {"gem.clipped", "gem.p"});
    graph.node("GlobalAveragePool", "gem.mean", {"gem.powers"});
    graph.node("Pow", "pool", {"gem.mean", "gem.1/p"});
  } else {
    graph.node(kind == "max" ? "GlobalMaxPool" : "GlobalAveragePool", "pool", {x});
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

std::vector<std::byte> onnx_bytes(const NetworkWeights& weights) {
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
  std::string x = pooled(layers, backbone(layers, "images"));
  if (embedding != nullptr) x = layers.linear(x, "embedding");
  normalise(layers, x, "embeddings");
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
