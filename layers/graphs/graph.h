// What the GPU's library (cuDNN) is asked to compute in one go: a convolution or a batch
// normalisation with what is fused to it. Here are the graphs by name, the one table of which
// fusions are taken in which precision, and the list of graphs a network needs.
// layers/cudnn/graph.h builds them for GPUs that are only described, layers/graphs/graph_run.h
// runs them.
//
// Images are (N, H, W, C), weights (O, H, W, I), in the precision's type, as is the bias b (O).
// gamma, beta, mean, inv_std and all sums are float32 vectors over channels.
#pragma once

#include "engine/base/dtype.h"
#include "engine/device/precision.h"
#include "engine/tape/program.h"
#include "layers/batchnorm.h"
#include "layers/conv2d.h"

#include <array>
#include <compare>
#include <string>
#include <vector>

namespace rk {

enum class GraphKind : std::uint8_t {
  // Forward: x, w -> y.
  kConvolution,             // y = conv(x, w)
  kConvolutionSums,         // and sum and sum of squares of y, per channel
  kConvolutionBias,         // y = conv(x, w) + b
  kConvolutionBiasRelu,     // y = relu(conv(x, w) + b)
  kConvolutionBiasAddRelu,  // y = relu(conv(x, w) + b + residual)
  // Gradient of the input: dy, w -> dx. `other` is what other readers of x already contributed; the
  // mask is that of the ReLU that made x, so that what comes out is the gradient before it.
  kInputGradient,         // dx = dgrad(dy, w)
  kInputGradientAdd,      // dx = dgrad(dy, w) + other
  kInputGradientRelu,     // dx = dgrad(dy, w) where x > 0, else 0
  kInputGradientAddRelu,  // dx = dgrad(dy, w) + other where x > 0, else 0
  kWeightGradient,        // dw = wgrad(dy, x), in the precision's type
  // Batch normalisation of x (N, OH, OW, O) with the batch's statistics, which come out, as do the
  // running ones advanced.
  kBatchNorm,         // y = bn(x)
  kBatchNormRelu,     // y = relu(bn(x))
  kBatchNormAddRelu,  // y = relu(bn(x) + residual), and the bits y > 0
  // Its gradient: dy, x -> dx, dgamma, dbeta.
  kBatchNormGradient,
  kBatchNormReluGradient,     // the ReLU's mask is computed again from x
  kBatchNormAddReluGradient,  // the mask is the bits; masked dy, the residual's gradient, comes out
};

std::string_view name_of(GraphKind kind);

// The tensors of a graph, for who runs it: what the comments above call them.
enum class GraphRole : std::uint8_t {
  kX,
  kW,
  kBias,
  kResidual,
  kY,
  kSum,
  kSquares,
  kDy,
  kOthers,
  kDx,
  kDw,
  // Of batch normalisations alone:
  kGamma,
  kBeta,
  kRunningMean,
  kRunningVariance,
  kNextMean,  // the running statistics, advanced
  kNextVariance,
  kMean,
  kInvStd,
  kSigns,     // the bits y > 0, eight a byte
  kMaskedDy,  // dy where y > 0, else 0
  kDGamma,
  kDBeta
};

// One graph: all that decides which plans the library has for it.
struct GraphSpec {
  GraphKind kind{};
  Precision precision{};
  // The convolution's geometry. Batch normalisations look at its output alone; for them c is 0, h
  // and w are OH and OW, kernel and stride 1, padding 0.
  std::int64_t n = 0, c = 0, h = 0, w = 0, out_channels = 0;
  std::array<std::int64_t, 2> kernel{1, 1}, stride{1, 1}, padding{0, 0};  // height, width

  std::int64_t out_h() const { return (h + 2 * padding[0] - kernel[0]) / stride[0] + 1; }
  std::int64_t out_w() const { return (w + 2 * padding[1] - kernel[1]) / stride[1] + 1; }
  std::int64_t taps() const { return kernel[0] * kernel[1]; }
  // "fp16 conv+sums 128x56x56x64 -> 64, 3x3/1"; also the padding where it is not half the kernel.
  std::string text() const;
  auto operator<=>(const GraphSpec&) const = default;  // NOLINT: clang-tidy 14 sees a 0
};

// A tensor that a graph reads or writes.
struct GraphTensor {
  GraphRole role;
  std::int64_t elements;
  DType type;
  bool written;
};
std::vector<GraphTensor> tensors_of(const GraphSpec& spec);

// What remains of a kind without what is fused to it: the convolution or the input's gradient
// alone; itself where nothing is.
GraphKind part_of(GraphKind kind);

// The graph to take where `wanted` would be best: itself, or the part of it that the library has
// fast kernels for (our own do the rest).
GraphKind taken(const GraphSpec& wanted);

// Channels of the images a first layer reads: 3, or as many as the fastest kernels ask for, the
// rest zero.
std::int64_t image_channels(Precision precision);

// Whether batch normalisation by the library is wanted in a precision. In fp32 it is not: there the
// digits of data far from zero are kept, of which the library says nothing.
bool normalises_by_graph(Precision precision);

// The graphs of a batch normalisation of (N, H, W, C) with the batch's statistics. These are the
// constants they are built with; one with others is our own kernels' work.
constexpr double kGraphEpsilon = 1e-5;
constexpr double kGraphMomentum = 0.1;
struct BatchNormGraphs {
  GraphSpec forward, backward;
};
BatchNormGraphs batchnorm_graphs(const Shape& shape, Precision precision, bool relu, bool residual);

// The graph of a convolution, whose images of a first layer have image_channels().
GraphSpec graph_spec(const ConvolutionGeometry& geometry, Precision precision, GraphKind kind);

// A convolution with the batch normalisation behind it, and how often the network has it.
struct BatchNormUnit {
  ConvolutionGeometry convolution;
  bool relu = false, residual = false, input_gradient = false;
  int count = 0;
  GraphSpec sums;          // the convolution's, with sums beside it
  BatchNormGraphs graphs;  // the normalisation's
};

// The distinct ones of a network trained with the batch's statistics. program: as for graphs_of().
std::vector<BatchNormUnit> batchnorm_units(const Program& program, Precision precision);

// The distinct graphs of a network's convolutions and batch normalisations, in order. program:
// recorded with BatchNormMode::kRunning (so that each convolution is a node with its normalisation,
// residual and ReLU), with gradients for training. mode says whether the batch's statistics
// normalise instead.
std::vector<GraphSpec> graphs_of(const Program& program, BatchNormMode mode, Precision precision);

}  // namespace rk
