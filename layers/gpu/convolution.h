// A convolution's cuDNN graphs: forward, with its fused epilogue, and the gradients of weight and
// input. Listed by graphs(), built by plan(), tied to memory by carve() and then the bind calls,
// run on the context's stream. The counterpart of OneDnnConvolution (layers/onednn/convolution.h)
// on the CPU.
#pragma once

#include "engine/device/carver.h"
#include "engine/device/context.h"
#include "layers/conv2d.h"
#include "layers/gpu/gradient_sums.h"
#include "layers/graphs/graph_runner.h"

#include <cstdint>
#include <vector>

namespace rk::gpu {

// Operations fused after a convolution, in this order: y + residual + bias, ReLU; or, beside the
// output, its sums and sums of squares over each channel.
struct Epilogue {
  bool bias = false, residual = false, relu = false;
  bool sums = false;
};
Graph forward_graph(const ConvolutionGeometry& geometry, Precision precision,
                    const Epilogue& epilogue);

// Whether cuDNN can fuse channel sums with a convolution in that precision.
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

  // Sets the row stride of y and dy; call before graphs() and plan().
  void set_row_stride(std::int64_t row_stride) {
    geometry_.y_row_stride = row_stride == geometry_.y[3] ? 0 : row_stride;
  }
  std::int64_t y_row_stride() const {
    return geometry_.y_row_stride > 0 ? geometry_.y_row_stride : geometry_.y[3];
  }

  // Whether the plan table names an engine for the input's gradient with channel sums, which means
  // that cuDNN has it and that it is the faster way.
  bool sums_gradient(const EdgeUse& dx) const;
  // The graphs that plan() builds; if cuDNN refuses a fused graph on this GPU, plan() builds its
  // unfused part instead.
  void graphs(const EdgeUse& dx, std::vector<Graph>& list) const;
  void plan(const EdgeUse& dx);
  void carve(Carver& workspace) {
    workspace_ = workspace.take<std::byte>(static_cast<std::int64_t>(workspace_bytes_));
  }

  // Weights are OHWI in T, with the images' input channels. Tensors that the forward graph does not
  // use may be null.
  struct Forward {
    const T* x = nullptr;
    const T* w = nullptr;
    const T* bias = nullptr;
    const T* residual = nullptr;
    T* y = nullptr;
    float* sum = nullptr;
    float* squares = nullptr;
  };
  void bind_forward(const Forward& tensors);
  struct Backward {
    const T* x = nullptr;
    const T* dy = nullptr;
    const T* w = nullptr;
    T* dw = nullptr;
    T* dx = nullptr;
    const T* addend = nullptr;  // added to dx if it accumulates
    float* dx_sums = nullptr;   // [channels of x]
  };
  void bind_backward(const Backward& tensors);

  void forward() const;
  void backward_weights() const { weights_.run(); }
  void backward_data() const;  // does nothing if dx is not wanted

 private:
  Graph data_graph(const EdgeUse& dx) const;

  const Context& context_;
  ConvolutionGeometry geometry_;
  Precision precision_;
  Epilogue epilogue_;
  bool has_backward_;
  EdgeUse use_;
  // Whether the graphs do everything requested; else our own kernels finish.
  bool forward_whole_ = true, data_whole_ = true;
  Forward tensors_;
  Backward gradients_;
  GraphRunner forward_, weights_, data_;
  UnitNormalisation unit_;
  std::size_t workspace_bytes_ = 0;
  void* workspace_ = nullptr;
};

}  // namespace rk::gpu
