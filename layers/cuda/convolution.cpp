#include "layers/cuda/convolution.h"

#include "engine/base/error.h"
#include "engine/base/note.h"
#include "engine/device/cuda/context.h"
#include "kernels/blocks/elementwise_block.h"
#include "kernels/half_element.h"
#include "kernels/launch.h"
#include "layers/cuda/nodes.h"

#include <algorithm>

namespace rk::gpu {
namespace {

GraphKind input_gradient_kind(const EdgeUse& use) {
  if (use.accumulate) {
    return use.mask ? GraphKind::kInputGradientAddRelu : GraphKind::kInputGradientAdd;
  }
  return use.mask ? GraphKind::kInputGradientRelu : GraphKind::kInputGradient;
}

}  // namespace

void allow_gradient_forms(const Program& program, const ConvolutionGeometry& geometry,
                          NodeInput& input) {
  const auto fused = [&](GraphKind kind) {
    return taken(graph_spec(geometry, program.options().precision, kind)) == kind;
  };
  input.adds_elsewhere = true;
  input.masks_gradient =
      fused(GraphKind::kInputGradientAddRelu) && fused(GraphKind::kInputGradientRelu);
}

template <class T> std::size_t Convolution<T>::plan(const EdgeUse& dx) {
  use_ = dx;
  const auto build = [&](GraphKind& kind) {
    const GraphKind part = part_of(kind);
    try {
      return GpuGraph(context_, graph_spec(geometry_, precision_, kind));
    } catch (const DeviceError& error) {
      // Sums are asked for by who needs them; the rest our own kernels can do.
      if (part == kind || kind == GraphKind::kConvolutionSums) throw;
      note(fmt::format("{}; it is computed in parts", error.what()));
    }
    kind = part;
    return GpuGraph(context_, graph_spec(geometry_, precision_, kind));
  };
  taken_kind_ = forward_kind_;
  forward_ = build(taken_kind_);
  std::size_t bytes = forward_.workspace_bytes();
  if (!has_backward_) return bytes;
  weights_ = GpuGraph(context_, graph_spec(geometry_, precision_, GraphKind::kWeightGradient));
  bytes = std::max(bytes, weights_.workspace_bytes());
  if (!use_.wanted) return bytes;
  data_kind_ = taken(graph_spec(geometry_, precision_, input_gradient_kind(use_)));
  data_ = build(data_kind_);
  return std::max(bytes, data_.workspace_bytes());
}

template <class T> void Convolution<T>::bind_forward(const Forward& tensors, void* workspace) {
  tensors_ = tensors;
  forward_.bind({{GraphRole::kX, tensors.x},
                 {GraphRole::kW, tensors.w},
                 {GraphRole::kBias, tensors.bias},
                 {GraphRole::kResidual, tensors.residual},
                 {GraphRole::kY, tensors.y},
                 {GraphRole::kSum, tensors.sum},
                 {GraphRole::kSquares, tensors.squares}},
                workspace);
}

template <class T>
void Convolution<T>::bind_backward(const T* x, const T* dy, const T* w, T* dw, T* dx,
                                   const T* addend, void* workspace) {
  weights_.bind({{GraphRole::kX, x}, {GraphRole::kDy, dy}, {GraphRole::kDw, dw}}, workspace);
  dx_ = dx;
  addend_ = addend;
  x_ = x;
  if (!use_.wanted) return;
  data_.bind({{GraphRole::kX, x},
              {GraphRole::kDy, dy},
              {GraphRole::kW, w},
              {GraphRole::kOthers, addend},
              {GraphRole::kDx, dx}},
             workspace);
}

template <class T> void Convolution<T>::forward() const {
  forward_.run();
  if (taken_kind_ == forward_kind_) return;
  launch(AddBiasAndRelu<T>{.rows = geometry_.y.elements() / geometry_.y[3],
                           .channels = static_cast<int>(geometry_.y[3]),
                           .bias = tensors_.bias,
                           .residual = forward_kind_ == GraphKind::kConvolutionBiasAddRelu
                                           ? tensors_.residual
                                           : nullptr,
                           .relu = forward_kind_ != GraphKind::kConvolutionBias,
                           .y = tensors_.y},
         context_.cuda().stream());
}

template <class T> void Convolution<T>::backward_data() const {
  if (!use_.wanted) return;
  data_.run();
  // What the library does not fuse here.
  if (data_kind_ != GraphKind::kInputGradient) return;
  if (use_.accumulate) {
    launch(
        CopyOrAdd<T>{.count = geometry_.x.elements(), .x = addend_, .y = dx_, .accumulate = true},
        context_.cuda().stream());
  }
  if (use_.mask) {
    launch(
        ReluGradient<T>{
            .count = geometry_.x.elements(), .z = x_, .dy = dx_, .dx = dx_, .accumulate = false},
        context_.cuda().stream());
  }
}

template class Convolution<float>;
template class Convolution<Float16>;
template class Convolution<Bfloat16>;

}  // namespace rk::gpu
