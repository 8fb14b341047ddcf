// How a batch normalisation is computed on a GPU (batchnorm_node() in gpu_nodes.h chooses when the
// node is appended):
//
//   by cuDNN's graphs   the batch's statistics in tf32, fp16 and bf16, wherever the library has the
//                       graph, unless the plan table (gpu_plans.h) says "own kernels"
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

// x (N, H, W, C) of `shape`.
bool graphs_normalise(const Program& program, const Shape& shape, const BatchNormOptions& options);
// Neither gradient may be in place: a graph's results lie where none of its inputs does.
std::unique_ptr<Node> graph_batchnorm_node(const std::string& name, Program& program,
                                           const Shape& shape, const BatchNormOptions& options);

}  // namespace rk::gpu
