// How a batch normalisation is computed on a GPU (batchnorm_node() in layers/gpu/nodes.h chooses
// when the node is appended):
//
//   by cuDNN's graphs   the batch's statistics in tf32, fp16 and bf16, unless the plan table
//                       (layers/graphs/plans.h) says "own kernels" or, which plan() finds out, the
//                       library has not got them on this GPU
//   by our own kernels  everything else
//   ... with sums       our own kernels behind a convolution that adds up its output on the side,
//                       where the plan table names an engine for that
//
// tests/cuda compares them with the CPU, on a GPU and on one made of the host.
#pragma once

#include "layers/batchnorm.h"
#include "layers/conv2d.h"
#include "layers/graphs/graph_run.h"

#include <memory>
#include <string>
#include <utility>

namespace rk::gpu {

// A convolution that may add up the channels of its output (rows, C) on the side.
class SummingConvolution : public ConvolutionNode {
 public:
  using ConvolutionNode::ConvolutionNode;
  // Both null where it does not. float (C), there after bind(), written by forward().
  struct Sums {
    const float* sum = nullptr;
    const float* squares = nullptr;
  };
  virtual bool adds_up() const = 0;
  virtual Sums sums() const = 0;
};

// A batch normalisation of x (N, H, W, C), however computed.
class BatchNormNode : public Node {
 public:
  BatchNormNode(std::string name, const Shape& shape, const BatchNormOptions& options)
      : Node(std::move(name)), shape_(shape), options_(options) {}
  const Shape& shape() const { return shape_; }
  const BatchNormOptions& options() const { return options_; }

 private:
  Shape shape_;
  BatchNormOptions options_;
};

// With the batch's statistics; a residual has a ReLU behind it.
struct BatchNormGraphs {
  Graph forward, backward;
};
BatchNormGraphs batchnorm_graphs(const Shape& shape, Precision precision,
                                 const BatchNormOptions& options);

// In fp32 the digits of data far from zero are kept, of which the library says nothing.
constexpr bool normalises_by_graph(Precision precision) { return precision != Precision::kFp32; }

}  // namespace rk::gpu
