// A convolution's cuDNN graphs: forward, with what is fused behind it, and the gradients of weight
// and input. Written down by graphs(), built by plan(), tied to memory by the bind calls, run on
// the context's stream. As OneDnnConvolution (layers/onednn/convolution.h) on the CPU.
#pragma once

#include "engine/device/context.h"
#include "layers/conv2d.h"
#include "layers/gpu/gradient_sums.h"
#include "layers/graphs/graph_run.h"

#include <vector>

namespace rk::gpu {

// What is computed behind a convolution, in this order: y + residual + bias, ReLU; or the output's
// sums and sums of squares over each channel beside it.
struct Epilogue {
  bool bias = false, residual = false, relu = false;
  bool sums = false;
};
Graph forward_graph(const ConvolutionGeometry& geometry, Precision precision,
                    const Epilogue& epilogue);

// Whether the library has sums beside a convolution in that precision.
constexpr bool fuses_sums(Precision precision) { return precision != Precision::kFp32; }

template <class T> class Convolution {
 public:
  Convolution(const Context& context, const ConvolutionGeometry& geometry, Precision precision,
              const Epilogue& epilogue, bool backward)
      : context_(context),
        geometry_(geometry),
        precision_(precision),
        epilogue_(epilogue),
        has_backward_(backward) {}

  // How far the rows of y and dy are apart; before graphs() and plan().
  void lay_out(std::int64_t row_stride) {
    geometry_.y_row_stride = row_stride == geometry_.y[3] ? 0 : row_stride;
  }
  std::int64_t y_row_stride() const {
    return geometry_.y_row_stride > 0 ? geometry_.y_row_stride : geometry_.y[3];
  }

  // Whether the plan table names an engine for the input's gradient with its sums beside it, and
  // so knows that there is one and that it is the faster way.
  bool sums_gradient(const EdgeUse& dx) const;
  // What plan() builds; where this GPU's library refuses what is fused to one, that one's part.
  void graphs(const EdgeUse& dx, std::vector<Graph>& list) const;
  std::size_t plan(const EdgeUse& dx);  // returns the workspace's bytes

  // Weights are OHWI in T, their input channels as the images'. What the forward graph has no use
  // for may be null.
  struct Forward {
    const T* x = nullptr;
    const T* w = nullptr;
    const T* bias = nullptr;
    const T* residual = nullptr;
    T* y = nullptr;
    float* sum = nullptr;
    float* squares = nullptr;
  };
  void bind_forward(const Forward& tensors, void* workspace);
  struct Backward {
    const T* x = nullptr;
    const T* dy = nullptr;
    const T* w = nullptr;
    T* dw = nullptr;
    T* dx = nullptr;
    const T* addend = nullptr;  // what is added to dx where it accumulates
    float* dx_sums = nullptr;   // [channels of x]
  };
  void bind_backward(const Backward& tensors, void* workspace);

  void forward() const;
  void backward_weights() const { weights_.run(); }
  void backward_data() const;  // nothing where dx is not wanted

 private:
  Graph data_graph(const EdgeUse& dx) const;

  const Context& context_;
  ConvolutionGeometry geometry_;
  Precision precision_;
  Epilogue epilogue_;
  bool has_backward_;
  EdgeUse use_;
  // Whether the graphs do all that is asked for; else our own kernels finish.
  bool forward_whole_ = true, data_whole_ = true;
  Forward tensors_;
  Backward gradients_;
  GpuGraph forward_, weights_, data_;
  UnitNormalisation unit_;
};

}  // namespace rk::gpu
