#include "layers/graphs/graph.h"

#include "engine/tape/program.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace rk {
namespace {

// By Graph::Op. Operations that only compute a mask have no name.
constexpr std::array<std::string_view, 15> kOpNames = {
    "conv", "dgrad", "wgrad", "bn",    "scale",      "bias",       "add",        "relu",
    "sums", "",      "",      "drelu", "drelu+dadd", "drelu+sums", "bn gradient"};

std::string sides_of(const Shape& shape) {
  std::string text;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    text += fmt::format("{}{}", axis > 0 ? "x" : "", shape[axis]);
  }
  return text;
}

std::string geometry_of(const Graph& graph, const Graph::Operation& convolution) {
  const auto [x, w, y] = Graph::convolution(convolution);
  const Shape& weight = graph.tensor(w).shape;
  const auto& [stride, padding] = convolution.window;
  std::string text = fmt::format("{} -> {}, {}x{}/{}", sides_of(graph.tensor(x).shape), weight[0],
                                 weight[1], weight[2], stride[0]);
  if (stride[0] != stride[1]) text += fmt::format("x{}", stride[1]);
  if (padding[0] != weight[1] / 2 || padding[1] != weight[2] / 2) {
    text += fmt::format(", padding {}x{}", padding[0], padding[1]);
  }
  return text;
}

bool is_convolution(const Graph::Operation& operation) { return operation.op <= Graph::Op::kWgrad; }

}  // namespace

std::string_view name_of(GraphRole role) {
  static constexpr std::array<std::string_view, 28> kNames = {
      "none",        "x",         "w",        "b",     "scale",   "residual",
      "y",           "dy",        "addend",   "dx",    "dw",      "masked_dy",
      "signs",       "sum",       "squares",  "gamma", "beta",    "running_mean",
      "running_var", "next_mean", "next_var", "mean",  "inv_std", "dgamma",
      "dbeta",       "scale_dy",  "scale_x",  "shift"};
  return kNames[static_cast<std::size_t>(role)];
}

std::size_t Graph::Tensor::bytes() const {
  const std::int64_t gap = row_stride > 0 ? row_stride - shape[3] : 0;
  const auto count =
      static_cast<std::size_t>(elements() + (gap > 0 ? (elements() / shape[3] - 1) * gap : 0));
  return type == DType::kUint8 ? (count + 7) / 8 : count * size_of(type);
}

DType Graph::type_of(GraphRole role) const {
  if (role == GraphRole::kNone || role > GraphRole::kSigns) return DType::kFloat32;
  return role == GraphRole::kSigns ? DType::kUint8 : image_type(precision_);
}

Graph::Value Graph::add_tensor(const Shape& shape, GraphRole role) {
  tensors_.push_back({.shape = shape, .role = role, .type = type_of(role)});
  return static_cast<Value>(tensors_.size()) - 1;
}

Graph::Value Graph::like(Value x, Op op, std::vector<Value> inputs) {
  const Value result = add_tensor(Shape(tensor(x).shape));
  operations_.push_back({.op = op, .inputs = std::move(inputs), .outputs = {result}});
  return result;
}

Graph::Value Graph::read(GraphRole role, const Shape& shape, std::int64_t row_stride) {
  const Value value = add_tensor(shape, role);
  tensors_.back().row_stride = row_stride;
  return value;
}

Graph::Value Graph::read(GraphRole role, const Graph& like) {
  const Tensor& tensor = like.tensor(role);
  return read(role, tensor.shape, tensor.row_stride);
}

const Graph::Tensor& Graph::tensor(GraphRole role) const {
  return *std::ranges::find(tensors_, role, &Tensor::role);
}

void Graph::write(Value value, GraphRole role, std::int64_t row_stride) {
  Tensor& tensor = tensors_[static_cast<std::size_t>(value)];
  tensor.role = role;
  tensor.type = type_of(role);
  tensor.written = true;
  tensor.row_stride = row_stride;
}

Graph::Value Graph::conv(Value x, Value w, const Window& window) {
  const Shape &in = tensor(x).shape, &weight = tensor(w).shape;
  Shape out = {in[0]};
  for (int axis = 0; axis < 2; ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    out.append((in[axis + 1] + 2 * window.padding[a] - weight[axis + 1]) / window.stride[a] + 1);
  }
  out.append(weight[0]);
  const Value y = add_tensor(out);
  operations_.push_back({.op = Op::kConv, .inputs = {x, w}, .outputs = {y}, .window = window});
  return y;
}

Graph::Value Graph::dgrad(Value dy, Value w, const Window& window, const Shape& x) {
  const Value dx = add_tensor(x);
  operations_.push_back({.op = Op::kDgrad, .inputs = {dy, w}, .outputs = {dx}, .window = window});
  return dx;
}

Graph::Value Graph::wgrad(Value dy, Value x, const Window& window, const Shape& w) {
  const Value dw = add_tensor(w);
  operations_.push_back({.op = Op::kWgrad, .inputs = {dy, x}, .outputs = {dw}, .window = window});
  return dw;
}

Graph::ChannelSums Graph::channel_sums(Value x) {
  const Shape channels = {tensor(x).shape[3]};
  const ChannelSums sums{add_tensor(channels), add_tensor(channels)};
  operations_.push_back(
      {.op = Op::kChannelSums, .inputs = {x}, .outputs = {sums.sum, sums.squares}});
  return sums;
}

Graph::Normalized Graph::batchnorm(Value x, Value gamma, Value beta, Value running_mean,
                                   Value running_variance, double epsilon, double momentum) {
  const Shape image = tensor(x).shape, channels = {image[3]};
  const Value y = add_tensor(image);
  const Normalized out{y, add_tensor(channels), add_tensor(channels), add_tensor(channels),
                       add_tensor(channels)};
  operations_.push_back(
      {.op = Op::kBatchNorm,
       .inputs = {x, gamma, beta, running_mean, running_variance},
       .outputs = {out.y, out.mean, out.inv_std, out.next_mean, out.next_variance},
       .epsilon = epsilon,
       .momentum = momentum});
  return out;
}

Graph::BatchNormGradient Graph::batchnorm_gradient(Value dy, Value x, Value gamma, Value mean,
                                                   Value inv_std) {
  const Shape image = tensor(x).shape, channels = {image[3]};
  const Value dx = add_tensor(image);
  const BatchNormGradient out{dx, add_tensor(channels), add_tensor(channels)};
  operations_.push_back({.op = Op::kBatchNormGradient,
                         .inputs = {dy, x, gamma, mean, inv_std},
                         .outputs = {out.dx, out.dgamma, out.dbeta}});
  return out;
}

Graph::MaskedSums Graph::masked_sums(Value dy, Value x, Value gamma, Value beta, Value mean,
                                     Value inv_std, Value residual) {
  const Shape image = tensor(x).shape, channels = {image[3]};
  const Value masked = add_tensor(image);
  const MaskedSums out{masked,
                       add_tensor(channels),
                       add_tensor(channels),
                       add_tensor(channels),
                       add_tensor(channels),
                       add_tensor(channels)};
  operations_.push_back(
      {.op = Op::kMaskedSums,
       .inputs = {dy, x, gamma, beta, mean, inv_std},
       .outputs = {out.dy, out.dgamma, out.dbeta, out.scale_dy, out.scale_x, out.shift}});
  if (residual != kNoValue) operations_.back().inputs.push_back(residual);
  return out;
}

bool Graph::has(Op op) const {
  return std::ranges::find(operations_, op, &Operation::op) != operations_.end();
}

Graph::Convolution Graph::convolution(const Operation& operation) {
  const auto& in = operation.inputs;
  const Value out = operation.outputs[0];
  switch (operation.op) {
    case Op::kDgrad: return {.x = out, .w = in[1], .y = in[0]};
    case Op::kWgrad: return {.x = in[1], .w = out, .y = in[0]};
    default: return {.x = in[0], .w = in[1], .y = out};
  }
}

std::string Graph::text() const {
  std::vector<Op> ops;
  std::string geometry = sides_of(tensors_[0].shape), rest;
  for (const Operation& operation : operations_) {
    ops.push_back(operation.op);
    if (is_convolution(operation)) geometry = geometry_of(*this, operation);
    if (operation.op == Op::kMaskedSums && operation.inputs.size() > 6) rest += ", residual";
    if (operation.op != Op::kBatchNorm) continue;
    if (operation.epsilon != 1e-5) rest += fmt::format(", epsilon {}", operation.epsilon);
    if (operation.momentum != 0.1) rest += fmt::format(", momentum {}", operation.momentum);
  }
  for (const Tensor& tensor : tensors_) {
    if (tensor.row_stride > 0) {
      rest += fmt::format(", {} in {}", name_of(tensor.role), tensor.row_stride);
    }
  }
  std::ranges::sort(ops);
  std::string names;
  for (const Op op : ops) {
    const std::string_view name = kOpNames[static_cast<std::size_t>(op)];
    if (!name.empty()) names += fmt::format("{}{}", names.empty() ? "" : "+", name);
  }
  return fmt::format("{} {} {}{}", name_of(precision_), names, geometry, rest);
}

std::vector<CountedGraph> counted_graphs(Program& program) {
  program.lay_out();
  std::vector<Graph> all;
  for (std::size_t n = 0; n < program.nodes().size(); ++n) {
    const auto* node = dynamic_cast<const RunsGraphs*>(program.nodes()[n].get());
    if (node != nullptr) node->graphs(program.uses(static_cast<int>(n)), all);
  }
  std::vector<CountedGraph> distinct;
  std::map<std::string, std::size_t> places;  // by text
  for (Graph& graph : all) {
    const auto [place, is_new] = places.emplace(graph.text(), distinct.size());
    if (is_new) distinct.push_back({std::move(graph), 0});
    ++distinct[place->second].count;
  }
  return distinct;
}

std::vector<Graph> graphs_of(Program& program) {
  std::vector<Graph> graphs;
  for (CountedGraph& counted : counted_graphs(program)) {
    graphs.push_back(std::move(counted.graph));
  }
  return graphs;
}

}  // namespace rk
