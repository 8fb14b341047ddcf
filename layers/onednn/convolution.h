// A convolution's oneDNN primitives, built by plan() and tied to memory by carve() and then the
// bind calls: forward (optionally followed by bias, residual addition and ReLU), gradient of the
// input, gradient of the weight. An accumulating input gradient is computed for a few images at a
// time in the workspace, and added while still in cache.
#pragma once

#include "engine/device/carver.h"
#include "engine/device/context.h"
#include "engine/tape/program.h"
#include "layers/conv2d.h"

#include <memory>

namespace rk {

class OneDnnConvolution {
 public:
  struct Wants {
    bool bias = false;
    bool residual = false;
    bool relu = false;
    bool backward = false;
  };

  OneDnnConvolution(const Context& context, const Wants& wants);
  ~OneDnnConvolution();

  // Whether the library has optimised code for every pass, not only its reference code, which is a
  // hundred times slower. With AVX2 it has none for images of a few pixels in channel blocks. The
  // result does not depend on the number of images or on what is fused, because all programs of a
  // network share its weights.
  static bool has_own_code(const Context& context, const ConvolutionGeometry& geometry);
  void plan(const ConvolutionGeometry& geometry, const EdgeUse& dx);
  void carve(Carver& workspace);

  // Weights are in the geometry's order. bias and residual may be null.
  void bind_forward(const float* x, const float* w, const float* bias, const float* residual,
                    float* y);
  void bind_backward(const float* x, const float* dy, const float* w, float* dw, float* dx);

  void forward();
  void backward_data();  // does nothing if dx is not wanted
  void backward_weights();
  // Run the convolution primitives alone, without reordering or adding. backward_floor() must
  // directly follow backward_weights() and then backward_data().
  void forward_floor();
  void backward_floor();

 private:
  void bind_backward_weights(const float* x, const float* dy, float* dw);
  void bind_backward_data(const float* dy, const float* w, float* dx);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rk
