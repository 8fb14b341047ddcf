// A computation recorded once, planned once, replayed every step.
//
// Layers append nodes and infer shapes; plan() works out how long every tensor lives over forward
// and backward, gives it a fixed offset in one arena, lets every node build its primitives, and
// decides for each gradient edge whether it overwrites (first writer in backward order) or
// accumulates (the later ones, e.g. a residual branch). A step then is forward(), the loss,
// backward(): two loops that allocate nothing.
//
//   Program program(context, parameters, {.gradients = true});
//   TensorId x = program.input("input", {16, 224, 224, 3});
//   TensorId e = resnet(program, x, spec);
//   program.set_output(e);
//   program.plan();
//   ... fill program.value(x); program.forward();
//   ... loss into program.gradient(e); program.backward();
#pragma once

#include "engine/buffer.h"
#include "engine/context.h"
#include "engine/parameters.h"
#include "engine/shape.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace rk {

using TensorId = int;

// Where a node's backward puts the gradient of one input.
struct GradientEdge {
  float* data = nullptr;  // null: nobody wants it
  bool accumulate = false;
};

// What a node finds in memory, fixed for the program's life.
struct NodeMemory {
  std::vector<const float*> inputs;
  std::vector<GradientEdge> input_gradients;
  float* output = nullptr;
  float* output_gradient = nullptr;  // a node may destroy it: it is its last reader
  void* saved = nullptr;             // kept from forward to backward
  void* workspace = nullptr;         // free between nodes
};

// What a node claims while it plans.
struct NodeClaims {
  std::size_t saved_bytes = 0;
  std::size_t workspace_bytes = 0;
};

class Node {
 public:
  explicit Node(std::string name) : name_(std::move(name)) {}
  virtual ~Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  const std::string& name() const { return name_; }
  virtual NodeClaims plan() = 0;                    // build primitives, say what memory is needed
  virtual void bind(const NodeMemory& memory) = 0;  // the addresses, once
  virtual void forward() = 0;
  virtual void backward() = 0;
  // The library primitives of this node alone, for the floor of `bench step`; nothing by default.
  virtual void forward_floor() {}
  virtual void backward_floor() {}

 private:
  std::string name_;
};

struct NodeInput {
  TensorId tensor = -1;
  bool read_in_backward = false;  // the value must still be there
  // The gradient of this input may take the place of the output's gradient: backward reads each
  // element of it before, or while, it writes the same element here.
  bool gradient_in_place = false;
};

struct NodeOutput {
  std::string name;
  Shape shape;
  std::int64_t width = 0;  // channels side by side for images (engine/layout.h), 0 elsewhere
  bool read_in_backward = false;
};

class Program {
 public:
  struct Options {
    bool gradients = false;       // record for training: backward() exists
    bool input_gradient = false;  // also dL/d input
    bool keep_all = false;  // no sharing of memory: every value and gradient can be read after a
                            // step (tests)
  };
  struct Memory {
    std::size_t arena_bytes = 0;
    std::size_t arena_lower_bound = 0;
    std::size_t workspace_bytes = 0;
  };

  Program(const Context& context, Parameters& parameters, Options options)
      : context_(context), parameters_(parameters), options_(options) {}

  // Recording ------------------------------------------------------------------------------------
  // width: channels side by side for images (engine/layout.h); 0 is NHWC.
  TensorId input(const std::string& name, const Shape& shape, std::int64_t width = 0);
  TensorId append(std::unique_ptr<Node> node, std::vector<NodeInput> inputs, NodeOutput output);
  void set_output(TensorId tensor) { output_ = tensor; }

  const Context& context() const { return context_; }
  Parameters& parameters() const { return parameters_; }
  const Options& options() const { return options_; }
  const Shape& shape(TensorId id) const { return tensor(id).shape; }
  std::int64_t width(TensorId id) const { return tensor(id).width; }
  bool wants_gradient(TensorId id) const { return tensor(id).wants_gradient; }

  // Planning --------------------------------------------------------------------------------------
  void plan();
  Memory memory() const { return memory_; }

  // Running ---------------------------------------------------------------------------------------
  void forward();
  void backward();  // reads gradient(output), writes every parameter's gradient
  float* value(TensorId id) const;
  float* gradient(TensorId id) const;  // null where it is not wanted

  // Looking ---------------------------------------------------------------------------------------
  const std::vector<std::unique_ptr<Node>>& nodes() const { return nodes_; }
  // What a node said about its tensors when it was appended.
  std::vector<NodeInput> inputs_of(int node) const;
  TensorId output_of(int node) const { return outputs_[static_cast<std::size_t>(node)]; }
  bool output_read_in_backward(int node) const {
    return tensor(output_of(node)).read_in_backward_by_producer;
  }
  // The tensor a node of that name writes; -1 where there is none.
  TensorId find(const std::string& name) const;
  // Any tensor or gradient as NHWC (images) or as it is.
  void copy_out(TensorId id, const float* stored, float* out) const;

 private:
  struct TensorState {
    std::string name;
    Shape shape;
    std::int64_t width = 0;
    int producer = -1;
    bool wants_gradient = false;
    bool read_in_backward_by_producer = false;
    int value_storage = -1;
    int gradient_storage = -1;
  };
  struct Edge {
    NodeInput input;
    bool accumulate = false;
  };

  const TensorState& tensor(TensorId id) const { return tensors_[static_cast<std::size_t>(id)]; }
  TensorState& tensor(TensorId id) { return tensors_[static_cast<std::size_t>(id)]; }
  float* at(int storage) const;
  int backward_time(int node) const { return 2 * static_cast<int>(nodes_.size()) - node; }

  const Context& context_;
  Parameters& parameters_;
  Options options_;
  std::vector<TensorState> tensors_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::vector<Edge>> edges_;  // by node
  std::vector<TensorId> outputs_;         // by node
  TensorId output_ = -1;
  std::vector<std::size_t> offsets_;  // by storage
  Memory memory_;
  Buffer arena_, workspace_;
};

}  // namespace rk
