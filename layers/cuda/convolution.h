// A convolution's cuDNN graphs: forward, with what is fused behind it, and the gradients of weight
// and input. Built by plan(), tied to memory by the bind calls, run on the context's stream. As
// OneDnnConvolution (conv2d_onednn.h) on the CPU.
#pragma once

#include "engine/device/context.h"
#include "layers/conv2d.h"
#include "layers/graphs/graph_run.h"

namespace rk::gpu {

template <class T> class Convolution {
 public:
  Convolution(const Context& context, const ConvolutionGeometry& geometry, Precision precision,
              GraphKind forward, bool backward)
      : context_(context),
        geometry_(geometry),
        precision_(precision),
        forward_kind_(forward),
        has_backward_(backward) {}

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
  // addend: what is added to the gradient of x where it accumulates.
  void bind_backward(const T* x, const T* dy, const T* w, T* dw, T* dx, const T* addend,
                     void* workspace);

  void forward() const;
  void backward_weights() const { weights_.run(); }
  void backward_data() const;  // nothing where dx is not wanted

 private:
  const Context& context_;
  ConvolutionGeometry geometry_;
  Precision precision_;
  GraphKind forward_kind_;
  GraphKind taken_kind_{};  // of the forward graph: a part of what is wanted where it was refused
  bool has_backward_;
  EdgeUse use_;
  GraphKind data_kind_{};
  Forward tensors_;
  const T* x_ = nullptr;
  GpuGraph forward_, weights_, data_;
  T* dx_ = nullptr;
  const T* addend_ = nullptr;
};

}  // namespace rk::gpu
