// A computation that is recorded once, planned once and replayed every step.
//
// Layers append nodes and infer shapes (engine/tape/tape.h holds what they recorded); plan()
// decides where every tensor lies and how each gradient is written (engine/tape/storage_plan.h),
// and lets every node build its primitives. A step is then forward(), the loss, backward(): two
// loops that allocate nothing.
//
// On a GPU (context.on_gpu()) every tensor lies in GPU memory: images NHWC in the precision's type,
// the network's output in float32. Nodes put their work on the context's stream, in order.
//
//   Program program(context, parameters, {.gradients = true});
//   TensorId x = program.input("input", {16, 224, 224, 3});
//   TensorId y = global_pool(program, x, "pool", {});  // and other functions of layers/
//   TensorId e = l2norm(program, y, "embeddings");
//   program.set_output(e);
//   program.plan();
//   ... fill program.value(x); program.forward();
//   ... loss into program.gradient(e); program.backward();
#pragma once

#include "engine/base/dtype.h"
#include "engine/base/shape.h"
#include "engine/device/context.h"
#include "engine/device/memory.h"
#include "engine/device/pinned_buffer.h"
#include "engine/device/precision.h"
#include "engine/tape/layout.h"
#include "engine/tape/node.h"
#include "engine/tape/parameters.h"
#include "engine/tape/shared_work.h"
#include "engine/tape/storage_plan.h"
#include "engine/tape/tape.h"
#include "engine/tape/tensor.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace rk {

class Program {
 public:
  struct Options {
    bool gradients = false;       // record for training: backward() exists
    bool input_gradient = false;  // also dL/d input
    bool keep_all = false;  // no sharing of memory: every value and gradient can be read after a
                            // step (tests)
    Precision precision = Precision::kFp32;  // on a GPU; the CPU computes in fp32 only
    // Records as for a GPU even if the context has none: such a program can be inspected
    // (graphs_of, layers/graphs/graph.h), but not planned.
    bool for_gpu = false;
  };
  struct Footprint {
    std::size_t arena_bytes = 0;
    std::size_t workspace_bytes = 0;
  };

  Program(const Context& context, Parameters& parameters, const Options& options)
      : context_(context), parameters_(parameters), options_(options) {}

  // Recording ------------------------------------------------------------------------------------
  // block: adjacent channels of images (engine/tape/layout.h); 0: all of them, NHWC.
  TensorId input(const std::string& name, const Shape& shape, std::int64_t block = 0,
                 DType dtype = DType::kFloat32);
  // Stores an input that nobody reads yet in cells of its pixels, as a tensor of that shape.
  void gather_pixels(TensorId input, const SpaceToDepth& cells, const Shape& shape);
  TensorId append(std::unique_ptr<Node> node, const std::vector<NodeInput>& inputs,
                  NodeOutput output);
  void set_output(TensorId tensor) { tape_.output = tensor; }
  enum class When { kBeforeForward, kAfterBackward };
  // Returns the shared work of that type, created by the first node that asks for it.
  template <class Work> Work& shared(When when) {
    auto& works = when == When::kBeforeForward ? before_forward_ : after_backward_;
    for (const auto& each : works) {
      if (auto* work = dynamic_cast<Work*>(each.get())) return *work;
    }
    works.push_back(std::make_unique<Work>(context_));
    return static_cast<Work&>(*works.back());
  }

  const Context& context() const { return context_; }
  Parameters& parameters() const { return parameters_; }
  const Options& options() const { return options_; }
  bool on_gpu() const { return options_.for_gpu || context_.on_gpu(); }
  const Shape& shape(TensorId id) const { return tape_.tensor(id).shape; }
  // Null if the input's pixels are not in cells.
  const SpaceToDepth* cells(TensorId input) const {
    const auto& gathered = tape_.tensor(input).cells;
    return gathered ? &*gathered : nullptr;
  }
  // The shape (N, H, W, C) of an input's images, whether in cells or not.
  const Shape& image_shape(TensorId input) const {
    return cells(input) != nullptr ? cells(input)->image : shape(input);
  }
  // Valid for inputs always, for other images from lay_out() on.
  std::int64_t channel_block(TensorId id) const { return tape_.tensor(id).block; }
  DType dtype(TensorId id) const { return tape_.tensor(id).dtype; }
  bool wants_gradient(TensorId id) const { return tape_.tensor(id).wants_gradient; }

  // Planning --------------------------------------------------------------------------------------
  // The first part of plan(): decides the layout of each image, which tensors lie in others, the
  // lifetime of each and how each gradient is written. Adds a reorder node where two layouts meet.
  void lay_out();
  std::vector<EdgeUse> uses(int node) const;  // valid from lay_out() on
  // room: called with the final footprint() before anything is allocated; throws if that is too
  // much.
  void plan(const std::function<void(const Footprint&)>& room = {});
  Footprint footprint() const { return footprint_; }

  // Running ---------------------------------------------------------------------------------------
  void forward();
  void backward();  // reads gradient(output), writes the gradient of every parameter that learns
  // The same node by node, for callers that do something in between. Forward: begin_forward()
  // first. Backward: from the last node to the first; the gradients from parameters_begin(first) to
  // parameters_begin(end) are complete after complete_gradients(first, end).
  void begin_forward();
  void backward(int node);
  void complete_gradients(int first, int end);
  std::int64_t parameters_begin(int node) const { return tape_.at(node).parameters_begin; }
  // To be called once for every forward pass, but for those that repeat one (Node::count_forward).
  void count_forward();
  // Valid from plan() on. Tensors of any type, in GPU memory on a GPU. A gradient that is not
  // wanted has null data.
  Tensor value_of(TensorId id) const;
  Tensor gradient_of(TensorId id) const;
  // For float32 tensors.
  float* value(TensorId id) const { return value_of(id).as<float>(); }
  float* gradient(TensorId id) const { return gradient_of(id).as<float>(); }

  // Looking ---------------------------------------------------------------------------------------
  const Tape& tape() const { return tape_; }
  const std::vector<std::unique_ptr<Node>>& nodes() const { return tape_.nodes; }
  // How many nodes use each implementation (Node::implementation()): "53 convolutions by cuDNN,
  // ..."; empty if no node has a choice.
  std::string implementations() const;
  const Node* producer(TensorId id) const;  // null: an input of the program
  // The tensor with that name; -1 if there is none.
  TensorId find(const std::string& name) const;
  // Copies a tensor's value, also from a GPU, to float32 on the host, dense in the tensor's own
  // layout, even if the tensor lies in another one. Waits.
  std::vector<float> read(TensorId id) const;

 private:
  struct PlacedWork {
    SharedWork* work;
    StorageId storage;
  };

  void* at(StorageId storage) const;  // null for none
  // Whether a node about to be appended to `inputs`, or any node before it, has something to learn.
  bool learns(const std::vector<NodeInput>& inputs);
  // The steps of plan().
  std::vector<StorageId> plan_nodes();  // returns the memory kept for each node's backward
  std::vector<PlacedWork> plan_shared_works();
  void allocate(const std::function<void(const Footprint&)>& room);
  void bind_node(int node, StorageId saved);

  const Context& context_;
  Parameters& parameters_;
  Options options_;
  Tape tape_;
  std::int64_t parameters_end_ = 0;  // after the nodes so far
  std::size_t parameters_seen_ = 0;  // entries up to the nodes so far
  std::vector<std::unique_ptr<SharedWork>> before_forward_, after_backward_;
  bool laid_out_ = false;
  StoragePlan storage_;  // valid once laid out
  Footprint footprint_;
  mutable PinnedBuffer read_through_;        // host memory through which read() copies from a GPU
  std::vector<std::string> backward_names_;  // by node, for profilers
  Memory arena_, workspace_;
};

}  // namespace rk
