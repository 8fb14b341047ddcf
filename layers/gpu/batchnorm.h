// The ways to compute a batch normalisation on a GPU (batchnorm_node() in layers/gpu/nodes.h
// chooses when the node is appended):
//
//   by cuDNN's graphs   batch statistics in tf32, fp16 and bf16, unless the plan table
//                       (layers/graphs/plans.h) says "own kernels" or plan() finds that cuDNN does
//                       not have the graphs on this GPU
//   by our own kernels  everything else
//   ... with sums       our own kernels after a convolution that also sums its output per channel,
//                       if the plan table names an engine for that
//
// tests/cuda compares them with the CPU, on a GPU and on the emulated one of tests/host_gpu.
#pragma once

#include "layers/batchnorm.h"
#include "layers/conv2d.h"
#include "layers/graphs/graph.h"

#include <string>
#include <utility>

namespace rk::gpu {

// A convolution that may also sum its output (rows, C) per channel.
class SummingConvolution : public ConvolutionNode {
 public:
  using ConvolutionNode::ConvolutionNode;
  // Both null if it does not sum. float (C), allocated after bind(), written by forward().
  struct Sums {
    const float* sum = nullptr;
    const float* squares = nullptr;
  };
  virtual bool adds_up() const = 0;
  virtual Sums sums() const = 0;
};

// A batch normalisation of x (N, H, W, C), whichever way it is computed.
class BatchNormNode : public Node {
 public:
  BatchNormNode(std::string name, const Shape& shape, const BatchNormOptions& options)
      : Node(std::move(name)), shape_(shape), options_(options) {}
  std::string_view kind() const override { return "batch norm"; }
  const Shape& shape() const { return shape_; }
  const BatchNormOptions& options() const { return options_; }

 private:
  Shape shape_;
  BatchNormOptions options_;
};

// With batch statistics; a residual must be followed by a ReLU.
struct BatchNormGraphs {
  Graph forward, backward;
};
BatchNormGraphs batchnorm_graphs(const Shape& shape, Precision precision,
                                 const BatchNormOptions& options);

// In fp32, our own kernels keep the digits of data far from zero; cuDNN promises nothing about
// them.
constexpr bool normalises_by_graph(Precision precision) { return precision != Precision::kFp32; }

}  // namespace rk::gpu
