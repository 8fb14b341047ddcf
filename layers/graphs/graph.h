// A graph that the GPU's library (cuDNN) computes in one call, as a value that an operator
// builds:
//
//   Graph g(precision);
//   const auto y = g.conv(g.read(kX, {n, h, w, c}), g.read(kW, {o, 3, 3, c}), {.padding = {1, 1}});
//   g.write(g.relu(g.bias(y, g.read(kBias, {o}))), kY);
//
// Everything else walks over its operations: text(), the key in plan files (layers/graphs/plans.h);
// cuDNN's own form (layers/graphs/cudnn/recorder.h); the tests' reference
// (tests/host_gpu/cudnn/graph_loops.cpp). layers/graphs/graph_runner.h runs a graph.
//
// Images are (N, H, W, C), weights (O, H, W, I), vectors are over channels. Tensors that are read
// or written have the type of their role; between operations everything is float32.
#pragma once

#include "engine/base/dtype.h"
#include "engine/base/integers.h"
#include "engine/base/shape.h"
#include "engine/device/precision.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rk {

class Program;   // engine/tape/program.h
struct EdgeUse;  // engine/tape/node.h

// What a tensor means to the operator, which passes the tensor's address (GraphRunner::bind).
enum class GraphRole : std::uint8_t {
  kNone,  // between operations, not in memory
  // In the precision's type:
  kX,
  kW,
  kBias,
  kScale,
  kResidual,
  kY,
  kDy,
  kAddend,  // contributions of other readers of x to its gradient
  kDx,
  kDw,
  kMaskedDy,  // dy where y > 0, else 0
  // Bits, eight per byte:
  kSigns,  // y > 0
  // float32 vectors:
  kSum,
  kSquares,
  kGamma,
  kBeta,
  kRunningMean,
  kRunningVariance,
  kNextMean,  // the updated running statistics
  kNextVariance,
  kMean,
  kInvStd,
  kDGamma,
  kDBeta,
  kScaleDy,
  kScaleX,
  kShift
};
std::string_view name_of(GraphRole role);

class Graph {
 public:
  // In the order in which text() names them, whatever order the library requires.
  enum class Op : std::uint8_t {
    kConv,               // x, w -> y
    kDgrad,              // dy, w -> dx
    kWgrad,              // dy, x -> dw
    kBatchNorm,          // x, gamma, beta, running mean and variance -> y, mean, inv_std, the
                         // running ones advanced (conventions: layers/batchnorm.h)
    kScale,              // x, s -> x s, a factor for each channel
    kBias,               // x, b -> x + b
    kAdd,                // a, b -> a + b
    kRelu,               // x -> max(x, 0)
    kChannelSums,        // x -> its sum and its sum of squares
    kPositive,           // x -> the bits x > 0
    kNormalize,          // x, gamma, beta, mean, inv_std -> (x - mean) inv_std gamma + beta
    kReluGradient,       // dy, x -> dy where x > 0, else 0
    kMask,               // dy, bits -> dy where the bit is set, else 0
    kMaskedSums,         // dy, x, gamma, beta, mean, inv_std [, residual] -> g = dy where the
                         // normalised x [+ residual] is above 0, else 0; of that normalisation
                         // dgamma, dbeta; and scale_dy, scale_x, shift: its dx = scale_dy g +
                         // scale_x x + shift
    kBatchNormGradient,  // dy, x, gamma, mean, inv_std -> dx, dgamma, dbeta
  };
  using Value = int;  // an index into tensors()
  struct Window {
    std::array<std::int64_t, 2> stride{1, 1}, padding{0, 0};  // height, width
    bool operator==(const Window&) const = default;
  };
  struct Tensor {
    Shape shape;
    GraphRole role = GraphRole::kNone;
    bool written = false;
    DType type = DType::kFloat32;  // kUint8: bits
    // If an image is a range of a larger one's channels: elements from one pixel to the next; else
    // 0, which means as many as it has channels.
    std::int64_t row_stride = 0;
    std::int64_t elements() const { return shape.elements(); }
    std::size_t bytes() const;  // from its first element to its last
    bool operator==(const Tensor&) const = default;
  };
  struct Operation {
    Op op{};
    std::vector<Value> inputs, outputs;
    Window window = {};                // of convolutions
    double epsilon = 0, momentum = 0;  // of kBatchNorm
    bool operator==(const Operation&) const = default;
  };

  explicit Graph(Precision precision) : precision_(precision) {}

  // Writing ---------------------------------------------------------------------------------------
  Value read(GraphRole role, const Shape& shape, std::int64_t row_stride = 0);
  Value read(GraphRole role, const Graph& like);  // with the shape and stride that `like` has
  void write(Value value, GraphRole role, std::int64_t row_stride = 0);

  Value conv(Value x, Value w, const Window& window);
  Value dgrad(Value dy, Value w, const Window& window, const Shape& x);
  Value wgrad(Value dy, Value x, const Window& window, const Shape& w);
  Value scale(Value x, Value s) { return like(x, Op::kScale, {x, s}); }
  Value bias(Value x, Value b) { return like(x, Op::kBias, {x, b}); }
  Value add(Value a, Value b) { return like(a, Op::kAdd, {a, b}); }
  Value relu(Value x) { return like(x, Op::kRelu, {x}); }
  Value positive(Value x) { return like(x, Op::kPositive, {x}); }
  Value relu_gradient(Value dy, Value x) { return like(dy, Op::kReluGradient, {dy, x}); }
  Value mask(Value dy, Value bits) { return like(dy, Op::kMask, {dy, bits}); }
  struct ChannelSums {
    Value sum, squares;
  };
  ChannelSums channel_sums(Value x);
  struct Normalized {
    Value y, mean, inv_std, next_mean, next_variance;
  };
  Normalized batchnorm(Value x, Value gamma, Value beta, Value running_mean, Value running_variance,
                       double epsilon, double momentum);
  Value normalize(Value x, Value gamma, Value beta, Value mean, Value inv_std) {
    return like(x, Op::kNormalize, {x, gamma, beta, mean, inv_std});
  }
  struct BatchNormGradient {
    Value dx, dgamma, dbeta;
  };
  BatchNormGradient batchnorm_gradient(Value dy, Value x, Value gamma, Value mean, Value inv_std);
  struct MaskedSums {
    Value dy, dgamma, dbeta, scale_dy, scale_x, shift;
  };
  static constexpr Value kNoValue = -1;
  MaskedSums masked_sums(Value dy, Value x, Value gamma, Value beta, Value mean, Value inv_std,
                         Value residual = kNoValue);

  // Walking ---------------------------------------------------------------------------------------
  Precision precision() const { return precision_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  const Tensor& tensor(Value value) const { return tensors_[at(value)]; }
  const Tensor& tensor(GraphRole role) const;  // the graph must have the role
  const std::vector<Operation>& operations() const { return operations_; }
  bool has(Op op) const;
  // The tensors of a convolution or of one of its gradients, whichever two of them it reads.
  struct Convolution {
    Value x, w, y;
  };
  static Convolution convolution(const Operation& operation);

  // Identifies a graph: "fp16 conv+sums 128x56x56x64 -> 64, 3x3/1"; followed by the padding if it
  // is not half the kernel, by epsilon and momentum if they are not PyTorch's, and by "y in 256" if
  // y's rows are 256 elements apart.
  std::string text() const;
  bool operator==(const Graph&) const = default;

 private:
  Value add_tensor(const Shape& shape, GraphRole role = GraphRole::kNone);
  Value like(Value x, Op op, std::vector<Value> inputs);  // one result, of the shape of x
  DType type_of(GraphRole role) const;

  Precision precision_;
  std::vector<Tensor> tensors_;
  std::vector<Operation> operations_;
};

// A node that runs graphs of the GPU's library. The graphs are known once the program is laid out
// (Program::lay_out).
class RunsGraphs {
 public:
  virtual ~RunsGraphs() = default;
  // Adds to `list` the graphs that the node runs, given the uses of its inputs' gradients. Needs no
  // GPU.
  virtual void graphs(const std::vector<EdgeUse>& uses, std::vector<Graph>& list) const = 0;
};

// The distinct graphs that a program's nodes run, in node order, and how many nodes run each. The
// program need not be planned, nor its context have a GPU (Program::Options::for_gpu).
struct CountedGraph {
  Graph graph;
  int count = 0;
};
std::vector<CountedGraph> counted_graphs(Program& program);
std::vector<Graph> graphs_of(Program& program);

}  // namespace rk
