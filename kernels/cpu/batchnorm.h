// Batch normalisation's passes over memory on the CPU, fused with operations that would otherwise
// be passes of their own: ReLU, the residual addition, ReLU's mask in backward.
//
//   y = relu?( (x - mean) * gamma * inv_std + beta  [+ residual] )      mean, inv_std per channel
//   backward, M = batch * rows, g = dy where y > 0, S = sum g (x - mean):
//   dbeta = sum g,  dgamma = inv_std * S,
//   dx = gamma inv_std (g - dbeta / M - (x - mean) inv_std^2 S / M)
//
// Statistics: each plane (one image, one group of channels) yields its own mean and sum of squared
// deviations, from sums shifted by a sample of the plane, so that data far from zero keeps its
// digits; planes are combined in double, in the order of the images. So results depend neither on
// the number of threads nor on how the batch was split.
#pragma once

#include "engine/tape/layout.h"
#include "kernels/blocks/batchnorm_channel.h"

#include <cstddef>
#include <cstdint>

namespace rk::batchnorm_cpu {

// Doubles of the workspace below: two per image and channel.
std::int64_t partial_sums(const ImageLayout& layout);

// Per-channel mean and biased variance of x: of every plane, then combined.
void plane_statistics(int threads, const ImageLayout& layout, const float* x, double* workspace);
void finish_statistics(const ImageLayout& layout, const double* workspace, float* mean,
                       float* variance);

struct Channels {
  const float* mean;
  const float* scale;  // gamma * inv_std
  const float* shift;  // beta
};

// Bytes for the signs of a ReLU after a residual addition.
std::size_t sign_bytes(const ImageLayout& layout);

// residual and signs may be null; signs are written for relu with residual only. y_gap: elements
// between an image of y and the next, if y is a range of channels of a wider tensor.
void normalise(int threads, const ImageLayout& layout, const float* x, const Channels& channels,
               const float* residual, bool relu, void* signs, float* y, std::int64_t y_gap = 0);

struct Backward {
  const float* x;
  const float* dy;
  ReluMask mask;
  const void* signs;
  Channels channels;
  std::int64_t dy_gap = 0;  // as y_gap
};

// First pass: workspace gets the sums of g and of g (x - mean) per image and channel. g is written
// to d_residual, unless null, or added if accumulate; d_residual may be dy itself.
void gradient_sums(int threads, const ImageLayout& layout, const Backward& in, float* d_residual,
                   bool accumulate, double* workspace);
void finish_gradient_sums(const ImageLayout& layout, const double* workspace, double* sum_g,
                          double* sum_g_x);

// Second pass: dx = a g + b + c (x - mean), per channel; dx may be dy itself.
struct Apply {
  const float* a;
  const float* b;
  const float* c;
};
void gradient_apply(int threads, const ImageLayout& layout, const Backward& in, const Apply& apply,
                    float* dx, bool accumulate);

}  // namespace rk::batchnorm_cpu
