// A computation that is recorded once, planned once and replayed every step.
//
// Layers append nodes and infer shapes; plan() determines the lifetime of every tensor over forward
// and backward, gives each a fixed offset in one arena, lets every node build its primitives, and
// decides for each gradient edge whether it overwrites (the first writer in backward order) or
// accumulates (later ones, e.g. a residual branch). A step is then forward(), the loss, backward():
// two loops that allocate nothing.
//
// On a GPU (context.on_gpu()) every tensor lies in GPU memory: images NHWC in the precision's type,
// the network's output in float32. Nodes put their work on the context's stream, in order.
//
//   Program program(context, parameters, {.gradients = true});
//   TensorId x = program.input("input", {16, 224, 224, 3});
//   TensorId e = resnet(program, x, spec);
//   program.set_output(e);
//   program.plan();
//   ... fill program.value(x); program.forward();
//   ... loss into program.gradient(e); program.backward();
#pragma once

#include "engine/base/dtype.h"
#include "engine/base/shape.h"
#include "engine/device/context.h"
#include "engine/device/cuda/buffer.h"
#include "engine/device/memory.h"
#include "engine/device/precision.h"
#include "engine/tape/arena.h"
#include "engine/tape/layout.h"
#include "engine/tape/parameters.h"
#include "engine/tape/tensor.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rk {

using TensorId = int;

// How a node's backward must treat the gradient of one input.
struct EdgeUse {
  bool wanted = false;
  bool accumulate = false;  // add the contributions of the input's other readers
  bool mask = false;        // set the result to 0 where the input is not above 0
  bool sum = false;         // also write the sums over each channel of the complete result
};

// The addresses a node works on, fixed for the program's life.
struct NodeMemory {
  std::vector<Tensor> inputs;
  std::vector<Tensor> input_gradients;  // data null: not wanted
  std::vector<EdgeUse> uses;            // of input_gradients, as passed to plan()
  // The sum of the other readers' contributions to each gradient. It lies in the gradient's own
  // memory, unless the node asked for a separate place (NodeInput::adds_elsewhere).
  std::vector<Tensor> addends;
  std::vector<float*> gradient_sums;  // per channel, of input_gradients; null unless the use's
                                      // `sum` is set
  Tensor output;
  Tensor output_gradient;               // may be overwritten: this node is its last reader
  bool output_gradient_masked = false;  // already 0 where the output is not above 0
  // A masked gradient's sums over each channel (Node::sums_gradient); null: nobody wrote them.
  const float* output_gradient_sums = nullptr;
  void* saved = nullptr;      // kept from forward to backward
  void* workspace = nullptr;  // free between nodes
};

// Adjacent channels in the images that a node reads and writes (engine/tape/layout.h); 0 for
// tensors that are not images.
struct ChannelBlocks {
  std::vector<std::int64_t> inputs;
  std::int64_t output = 0;
};

// The memory that a node requests in plan().
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
  // Chooses the node's layouts. On entry, `blocks` holds the inputs' present layouts, and the first
  // input's layout for the output; the node changes what it wants otherwise, and the program
  // reorders the inputs accordingly. Called once, before lay_out().
  virtual void choose_layouts(ChannelBlocks& /*blocks*/) {}
  // If the output may lie in a larger tensor (NodeOutput::spaced): receives the distance, in
  // elements, between rows of the output and of its gradient. Called before plan().
  virtual void lay_out(std::int64_t /*row_stride*/) {}
  // Whether backward writes, together with the gradient of that input, the gradient's sums over
  // each channel. Asked once, after lay_out(), if another node uses them.
  virtual bool sums_gradient(std::size_t /*input*/, const EdgeUse& /*use*/) const { return false; }
  // Builds primitives and returns the memory needed. uses: which gradients of its inputs this node
  // will write, and how.
  virtual NodeClaims plan(const std::vector<EdgeUse>& /*uses*/) { return {}; }
  virtual void bind(const NodeMemory& memory) { memory_ = memory; }  // the addresses, once
  virtual void forward() = 0;
  virtual void backward() = 0;
  // The implementation in use, if there are several, as words for a list that counts them: "batch
  // norms by cuDNN".
  virtual std::string way() const { return ""; }
  // Makes the changes on the host that belong to a forward pass, if forward() computes on a GPU.
  virtual void count_forward() {}
  // Run the library primitives of this node alone, for the floor of `bench step`; default: nothing.
  virtual void forward_floor() {}
  virtual void backward_floor() {}

 protected:
  NodeMemory memory_;  // valid from bind() on

 private:
  std::string name_;
};

// Work that many nodes share, because on a GPU it would cost each node little but a launch: before
// a forward pass, or after backward. Its memory is reserved for the whole step (before forward) or
// from the start of backward (after backward) to the end of the step. Nodes add to the work in
// their plan(), and get their places in their bind().
class SharedWork {
 public:
  virtual ~SharedWork() = default;
  virtual void node_planned() = 0;      // called after each node's plan(), in node order
  virtual std::size_t plan() = 0;       // called after all nodes' plan(); returns bytes of memory
                                        // needed
  virtual void bind(void* memory) = 0;  // called before the nodes' bind()
  virtual void nodes_bound() = 0;
  virtual void run(int first, int end) = 0;  // does what nodes [first, end) added
};

struct NodeInput {
  TensorId tensor = -1;
  bool read_in_backward = false;  // backward reads the value, so it must be kept
  // The gradient of this input may overwrite the output's gradient: backward reads each element of
  // the latter before, or while, it writes the same element of the former.
  bool gradient_in_place = false;
  // If other readers have contributed to this input's gradient, the new sum is written to a
  // separate place (the old one: NodeMemory::addends), because a library may write its result in
  // several passes.
  bool adds_elsewhere = false;
  // The input and its gradient may lie in a larger tensor, with one stride between all images
  // (channels in blocks) or between all rows (otherwise): Tensor::image_stride, row_stride.
  bool spaced = false;
  // The input may lie inside the output, as its channels from `joined_at` on. Its producer then
  // writes the value there and reads the gradient there, and this node has nothing to do for this
  // input (Tensor::data shows that). -1: it may not.
  std::int64_t joined_at = -1;
  // Backward can set the gradient to 0 where the input is not above 0, so that the ReLU that
  // produced the input need not. It masks its own contribution and, with adds_elsewhere, also the
  // other readers'.
  bool masks_gradient = false;
};

struct NodeOutput {
  std::string name;
  Shape shape;
  bool read_in_backward = false;
  DType dtype = DType::kFloat32;
  // The output and its gradient may lie in a larger tensor (see NodeInput::spaced).
  bool spaced = false;
  // The output may lie inside the node's single input, as its channels or features from `part_at`
  // on, and its gradient inside the input's gradient; the node then has nothing to do (Tensor::data
  // shows that). -1: it may not.
  std::int64_t part_at = -1;
  // The output is a ReLU's, and backward accepts a gradient that is already 0 where the output is
  // 0; it then also has a use for that gradient's sums over each channel.
  bool takes_masked_gradient = false;
};

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
    // Prefixes of the names of frozen parameters. Backward computes nothing that only they would
    // need; their gradients stay 0.
    std::vector<std::string> frozen = {};
  };
  struct Footprint {
    std::size_t arena_bytes = 0;
    std::size_t arena_lower_bound = 0;
    std::size_t workspace_bytes = 0;
  };

  Program(const Context& context, Parameters& parameters, Options options)
      : context_(context), parameters_(parameters), options_(std::move(options)) {}

  // Recording ------------------------------------------------------------------------------------
  // block: adjacent channels of images (engine/tape/layout.h); 0 is NHWC.
  TensorId input(const std::string& name, const Shape& shape, std::int64_t block = 0,
                 DType dtype = DType::kFloat32);
  // Stores an input that nobody reads yet in cells of its pixels, as a tensor of that shape.
  void gather_pixels(TensorId input, const SpaceToDepth& cells, const Shape& shape);
  TensorId append(std::unique_ptr<Node> node, const std::vector<NodeInput>& inputs,
                  NodeOutput output);
  void set_output(TensorId tensor) { output_ = tensor; }
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
  const Shape& shape(TensorId id) const { return state(id).shape; }
  // Null if the input's pixels are not in cells.
  const SpaceToDepth* cells(TensorId input) const {
    return state(input).cells ? &*state(input).cells : nullptr;
  }
  // The shape (N, H, W, C) of an input's images, whether in cells or not.
  const Shape& image_shape(TensorId input) const {
    return cells(input) != nullptr ? cells(input)->image : shape(input);
  }
  // Valid for inputs always, for other images from lay_out() on.
  std::int64_t channel_block(TensorId id) const { return state(id).block; }
  DType dtype(TensorId id) const { return state(id).dtype; }
  bool wants_gradient(TensorId id) const { return state(id).wants_gradient; }

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
  std::int64_t parameters_begin(int node) const {
    return parameters_begin_[static_cast<std::size_t>(node)];
  }
  // On a GPU, must be called once for every forward pass that is executed: replaying a captured
  // pass omits the changes that nodes make on the host (Node::count_forward).
  void count_forward();
  // Tensors of any type, in GPU memory on a GPU. A gradient that is not wanted has null data.
  Tensor value_of(TensorId id) const;
  Tensor gradient_of(TensorId id) const;
  // For float32 tensors.
  float* value(TensorId id) const { return value_of(id).as<float>(); }
  float* gradient(TensorId id) const { return gradient_of(id).as<float>(); }

  // Looking ---------------------------------------------------------------------------------------
  const std::vector<std::unique_ptr<Node>>& nodes() const { return nodes_; }
  // How many nodes use each implementation (Node::way()): "53 convolutions by cuDNN, ..."; empty if
  // no node has a choice.
  std::string ways() const;
  // The inputs as the node declared them when it was appended.
  std::vector<NodeInput> inputs_of(int node) const;
  TensorId output_of(int node) const { return outputs_[static_cast<std::size_t>(node)]; }
  bool output_read_in_backward(int node) const {
    return state(output_of(node)).read_in_backward_by_producer;
  }
  const Node* producer(TensorId id) const;  // null: an input of the program
  // The tensor with that name; -1 if there is none.
  TensorId find(const std::string& name) const;
  // Copies a tensor's value, also from a GPU, to float32 on the host, dense in the tensor's own
  // layout, even if the tensor lies in another one. Waits.
  std::vector<float> read(TensorId id) const;
  // Copies any tensor or gradient, images as NHWC and others unchanged. stored: on the host, as the
  // program stores it; out: as many floats as the shape has elements.
  void copy_out(TensorId id, const float* stored, float* out) const;

 private:
  // The place of a tensor inside another one: `at` elements after the start of each row or image.
  struct Within {
    TensorId whole = -1;  // -1: not inside another
    std::int64_t at = 0;
  };
  struct TensorState {
    std::string name;
    Shape shape;
    std::int64_t block = 0;
    DType dtype = DType::kFloat32;
    std::optional<SpaceToDepth> cells;
    int producer = -1;
    bool wants_gradient = false;
    bool read_in_backward_by_producer = false;
    bool takes_masked_gradient = false;
    bool masked_gradient = false;
    bool spaced = false;
    std::int64_t part_at = -1;
    Within value_in, gradient_in;
    int value_storage = -1;
    int gradient_storage = -1;
    int gradient_sums = -1;  // storage
    std::size_t bytes() const {
      return static_cast<std::size_t>(shape.elements()) * size_of(dtype);
    }
  };
  struct Edge {
    NodeInput input;
    bool accumulate = false;
    bool mask = false;
    int storage = -1;  // of the gradient it writes
    int others = -1;   // of the other readers' sum, which it adds
    int sums = -1;     // of the channel sums it writes
    EdgeUse use() const { return {storage >= 0, accumulate, mask, sums >= 0}; }
  };

  const TensorState& state(TensorId id) const { return tensors_[static_cast<std::size_t>(id)]; }
  TensorState& state(TensorId id) { return tensors_[static_cast<std::size_t>(id)]; }
  void* at(int storage) const;  // null for -1
  // in: &TensorState::value_in or &TensorState::gradient_in.
  Tensor view(const TensorState& t, int storage, Within TensorState::*in) const;
  // Elements before a channel in a row of t, or in an image if channels are in blocks.
  static std::int64_t elements_before(const TensorState& t, std::int64_t channel);
  // Contiguous elements: of a row, or of an image if channels are in blocks.
  static std::int64_t run_of(const TensorState& t);
  static bool is_dense(const TensorState& t, const Tensor& view);
  // Whether a node about to be appended to `inputs`, or any node before it, has something to learn.
  bool learns(const std::vector<NodeInput>& inputs);
  bool goes_backward(int node) const { return state(output_of(node)).wants_gradient; }
  // Lifetimes. Node i is at time i in forward and 2 * count - i in backward; the loss is in
  // between, at `count`.
  void plan_values();
  void plan_gradients();
  int add_storage(const Lifetime& life);
  void extend(int storage, int time);
  // Layouts (engine/tape/choose_layouts.cpp).
  void choose_layouts();
  ChannelBlocks usual_blocks(const std::vector<Edge>& edges, const TensorState& output) const;
  TensorId append_reordered(TensorId id, std::int64_t block);
  // Which tensors lie in others (engine/tape/views.cpp).
  struct Reader {
    int node;
    const NodeInput* input;
  };
  using Readers = std::vector<std::vector<Reader>>;  // by tensor
  Readers readers() const;
  void plan_views();
  void plan_joins(const Readers& readers);
  void plan_parts(const Readers& readers);
  bool can_lie(TensorId id, const Within& within, Within TensorState::*in,
               const std::vector<Reader>& readers) const;
  void share_gradient(TensorId whole, const Readers& readers);
  int place_in_whole(const TensorState& t, int time);
  void plan_masks();
  int backward_time(int node) const { return 2 * static_cast<int>(nodes_.size()) - node; }

  const Context& context_;
  Parameters& parameters_;
  Options options_;
  std::vector<TensorState> tensors_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::vector<Edge>> edges_;        // by node
  std::vector<TensorId> outputs_;               // by node
  std::vector<std::int64_t> parameters_begin_;  // by node: offset in the flat buffers
  std::int64_t parameters_end_ = 0;             // after the nodes so far
  std::size_t parameters_seen_ = 0;             // entries up to the nodes so far
  TensorId output_ = -1;
  std::vector<std::unique_ptr<SharedWork>> before_forward_, after_backward_;
  std::vector<Lifetime> storages_;    // of tensors, nodes' own and shared memory
  std::vector<std::size_t> offsets_;  // by storage
  Footprint footprint_;
  mutable PinnedBuffer read_through_;        // host memory through which read() copies from a GPU
  std::vector<std::string> backward_names_;  // by node, for profilers
  Memory arena_, workspace_;
};

}  // namespace rk
