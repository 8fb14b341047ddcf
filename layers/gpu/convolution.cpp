#include "layers/gpu/convolution.h"

#include "engine/base/integers.h"
#include "kernels/blocks/elementwise_block.h"
#include "kernels/half_element.h"
#include "kernels/launch.h"
#include "layers/gpu/nodes.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace rk::gpu {
namespace {

using enum GraphRole;

Graph::Window window(const ConvolutionGeometry& geometry) {
  return {.stride = geometry.options.stride, .padding = geometry.options.padding};
}

// With the images' input channels; the parameter may have fewer.
Shape weight(const ConvolutionGeometry& geometry) {
  const auto& kernel = geometry.options.kernel;
  return {geometry.y[3], kernel[0], kernel[1], geometry.x[3]};
}

Graph weight_gradient_graph(const ConvolutionGeometry& geometry, Precision precision) {
  Graph g(precision);
  const auto dy = g.read(kDy, geometry.y, geometry.y_row_stride), x = g.read(kX, geometry.x);
  g.write(g.wgrad(dy, x, window(geometry), weight(geometry)), kDw);
  return g;
}

// add: adds the other readers' contributions. mask: applies the mask of the ReLU that produced x,
// so that the result is the gradient before that ReLU.
Graph input_gradient_graph(const ConvolutionGeometry& geometry, Precision precision, bool add,
                           bool mask) {
  Graph g(precision);
  const auto dy = g.read(kDy, geometry.y, geometry.y_row_stride), w = g.read(kW, weight(geometry));
  auto dx = g.dgrad(dy, w, window(geometry), geometry.x);
  if (add) dx = g.add(dx, g.read(kAddend, geometry.x));
  if (mask) dx = g.relu_gradient(dx, g.read(kX, geometry.x));
  g.write(dx, kDx);
  return g;
}

// In fp32 only one engine fuses anything with an input's gradient; it is on the heuristics'
// fallback list and compiles its kernels. In 16 bits the same holds for convolutions with a stride,
// where the plain graph followed by our own kernel is faster (on an H100, 3x3/2 of 256x56x56x128:
// 0.40 ms fused, 0.17 without the mask).
bool fuses_input_gradient(const ConvolutionGeometry& geometry, Precision precision) {
  const auto& stride = geometry.options.stride;
  return precision != Precision::kFp32 && stride[0] == 1 && stride[1] == 1;
}

// Builds the wanted graph, or only its part if cuDNN refuses it on this GPU; returns whether it is
// the whole.
bool build(const Context& context, const Graph& wanted, const Graph& part, GraphRunner& graph) {
  const bool whole =
      wanted == part || GraphRunner::exists(context, wanted, "it is computed in parts");
  graph = GraphRunner(context, whole ? wanted : part);
  return whole;
}

}  // namespace

Graph forward_graph(const ConvolutionGeometry& geometry, Precision precision,
                    const Epilogue& epilogue) {
  Graph g(precision);
  const auto x = g.read(kX, geometry.x), w = g.read(kW, weight(geometry));
  auto y = g.conv(x, w, window(geometry));
  if (epilogue.residual) y = g.add(y, g.read(kResidual, geometry.y));
  // The bias is in the precision's type and added last, because cuDNN has ready-made kernels for
  // these graphs; with a float32 bias, or a residual after it, cuDNN compiles a kernel for each.
  if (epilogue.bias) y = g.bias(y, g.read(kBias, {geometry.y[3]}));
  if (epilogue.relu) y = g.relu(y);
  g.write(y, kY, geometry.y_row_stride);
  if (epilogue.sums) {
    const auto [sum, squares] = g.channel_sums(y);
    g.write(sum, kSum);
    g.write(squares, kSquares);
  }
  return g;
}

void lay_out_images(Program& program, TensorId x, const std::string& name,
                    const Conv2dOptions& options) {
  constexpr std::int64_t kChannelStep = 16;  // what kernels of sm_90 read at once
  const std::int64_t side = options.stride[0];
  const bool gathers = options.in_channels > 0 && side > 1 && options.stride[1] == side &&
                       program.options().precision != Precision::kFp32 &&
                       program.producer(x) == nullptr && program.cells(x) == nullptr &&
                       !program.wants_gradient(x);
  if (!gathers) return;
  const Shape y = convolution_geometry(program, x, name, options).y;
  const Shape& in = program.shape(x);
  const auto taps = [&](std::size_t axis) { return divide_up(options.kernel[axis], side); };
  program.gather_pixels(x,
                        {.side = side,
                         .padding = options.padding,
                         .image = {in[0], in[1], in[2], options.in_channels}},
                        {y[0], y[1] + taps(0) - 1, y[2] + taps(1) - 1,
                         round_up(side * side * options.in_channels, kChannelStep)});
}

void allow_gradient_forms(const Program& program, const ConvolutionGeometry& geometry,
                          NodeInput& input) {
  input.adds_elsewhere = true;
  input.masks_gradient = fuses_input_gradient(geometry, program.options().precision);
}

template <class T> Graph Convolution<T>::data_graph(const EdgeUse& dx) const {
  const bool fuses = fuses_input_gradient(geometry_, precision_);
  Graph graph =
      input_gradient_graph(geometry_, precision_, fuses && dx.accumulate, fuses && dx.mask);
  return dx.sum ? graph_with_sums(graph) : graph;
}

template <class T> bool Convolution<T>::sums_gradient(const EdgeUse& dx) const {
  if (precision_ != Precision::kFp16 || !fuses_input_gradient(geometry_, precision_)) return false;
  const Graph graph = graph_with_sums(data_graph(dx));
  return plans_of(context_).names_engine(graph.text());
}

template <class T> void Convolution<T>::graphs(const EdgeUse& dx, std::vector<Graph>& list) const {
  list.push_back(forward_graph(geometry_, precision_, epilogue_));
  if (has_backward_) list.push_back(weight_gradient_graph(geometry_, precision_));
  if (has_backward_ && dx.wanted) list.push_back(data_graph(dx));
}

template <class T> void Convolution<T>::plan(const EdgeUse& dx) {
  use_ = dx;
  const Graph wanted = forward_graph(geometry_, precision_, epilogue_);
  // Sums are requested only if the plan table names an engine for them, so there is no smaller
  // part.
  const Graph part = epilogue_.sums ? wanted : forward_graph(geometry_, precision_, {});
  forward_whole_ = build(context_, wanted, part, forward_);
  workspace_bytes_ = forward_.workspace_bytes();
  if (!has_backward_) return;
  weights_ = GraphRunner(context_, weight_gradient_graph(geometry_, precision_));
  workspace_bytes_ = std::max(workspace_bytes_, weights_.workspace_bytes());
  if (!use_.wanted) return;
  // As in forward: the reader of the sums has no other way to get them.
  if (dx.sum) unit_ = UnitNormalisation(context_, geometry_.x[3]);
  const Graph data_part = dx.sum ? data_graph(dx) : data_graph({.wanted = true});
  data_whole_ = build(context_, data_graph(dx), data_part, data_) &&
                fuses_input_gradient(geometry_, precision_);
  workspace_bytes_ = std::max(workspace_bytes_, data_.workspace_bytes());
}

template <class T> void Convolution<T>::bind_forward(const Forward& tensors) {
  tensors_ = tensors;
  forward_.bind({{kX, tensors.x},
                 {kW, tensors.w},
                 {kBias, tensors.bias},
                 {kResidual, tensors.residual},
                 {kY, tensors.y},
                 {kSum, tensors.sum},
                 {kSquares, tensors.squares}},
                workspace_);
}

template <class T> void Convolution<T>::bind_backward(const Backward& tensors) {
  gradients_ = tensors;
  weights_.bind({{kX, tensors.x}, {kDy, tensors.dy}, {kDw, tensors.dw}}, workspace_);
  if (!use_.wanted) return;
  std::vector<GraphRunner::Place> places = {{kX, tensors.x},
                                            {kDy, tensors.dy},
                                            {kW, tensors.w},
                                            {kAddend, tensors.addend},
                                            {kDx, tensors.dx}};
  if (use_.sum) std::ranges::copy(unit_.places(tensors.dx_sums), std::back_inserter(places));
  data_.bind(places, workspace_);
}

template <class T> void Convolution<T>::forward() const {
  forward_.run();
  if (forward_whole_) return;
  launch(AddBiasAndRelu<T>{.rows = geometry_.y.elements() / geometry_.y[3],
                           .channels = static_cast<int>(geometry_.y[3]),
                           .bias = tensors_.bias,
                           .residual = epilogue_.residual ? tensors_.residual : nullptr,
                           .relu = epilogue_.relu,
                           .y = tensors_.y,
                           .y_stride = y_row_stride()},
         context_.stream());
}

template <class T> void Convolution<T>::backward_data() const {
  if (!use_.wanted) return;
  data_.run();
  if (data_whole_) return;
  if (use_.accumulate) {
    launch(CopyOrAdd<T>{.count = geometry_.x.elements(),
                        .x = gradients_.addend,
                        .y = gradients_.dx,
                        .accumulate = true},
           context_.stream());
  }
  if (use_.mask) {
    launch(ReluGradient<T>{.count = geometry_.x.elements(),
                           .z = gradients_.x,
                           .dy = gradients_.dx,
                           .dx = gradients_.dx,
                           .accumulate = false},
           context_.stream());
  }
}

template class Convolution<float>;
template class Convolution<Float16>;
template class Convolution<Bfloat16>;

}  // namespace rk::gpu
