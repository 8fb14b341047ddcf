// A computation recorded once, planned once, replayed every step.
//
// Layers append nodes and infer shapes; plan() works out how long every tensor lives over forward
// and backward, gives it a fixed offset in one arena, lets every node build its primitives, and
// decides for each gradient edge whether it overwrites (first writer in backward order) or
// accumulates (the later ones, e.g. a residual branch). A step then is forward(), the loss,
// backward(): two loops that allocate nothing.
//
// On a GPU (context.on_gpu()) every tensor lies in its memory, images NHWC in the precision's type
// and what a network ends with in float32; nodes put their work on the context's stream, in order.
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

// What a node's backward is to do with the gradient of one input.
struct EdgeUse {
  bool wanted = false;
  bool accumulate = false;  // what other readers of the input contributed is to be added
  bool mask = false;        // the result is to be 0 where the input is not above 0
  bool sum = false;  // of the result, all of it, the sums over each channel are to be written
};

// What a node finds in memory, fixed for the program's life.
struct NodeMemory {
  std::vector<Tensor> inputs;
  std::vector<Tensor> input_gradients;  // data null: nobody wants it
  std::vector<EdgeUse> uses;            // of input_gradients, as plan() was told
  // What other readers contributed to each: lies where the gradient goes unless the node asked for
  // another place.
  std::vector<Tensor> addends;
  std::vector<float*> gradient_sums;  // of input_gradients; null but where their use says sum
  Tensor output;
  Tensor output_gradient;               // a node may destroy it: it is its last reader
  bool output_gradient_masked = false;  // it is 0 already where the output is not above 0
  // Of a masked one, its sums over each channel (Node::sums_gradient); null: nobody wrote them.
  const float* output_gradient_sums = nullptr;
  void* saved = nullptr;      // kept from forward to backward
  void* workspace = nullptr;  // free between nodes
};

// Channels side by side of the images that a node reads and writes (engine/tape/layout.h); 0 for
// what is no image.
struct ChannelBlocks {
  std::vector<std::int64_t> inputs;
  std::int64_t output = 0;
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
  // In which layouts the node works: `blocks` comes with the inputs as they lie and the output as
  // the first of them does; a node says what it wants otherwise, and the program reorders inputs
  // that lie in another way. Once, before lay_out().
  virtual void choose_layouts(ChannelBlocks& /*blocks*/) {}
  // Where the output may lie in a larger tensor (NodeOutput::spaced): how far its rows, and those
  // of its gradient, are apart, in elements. Before plan().
  virtual void lay_out(std::int64_t /*row_stride*/) {}
  // Whether backward writes, with the gradient of that input, its sums over each channel too. Asked
  // once, after lay_out(), where someone takes them.
  virtual bool sums_gradient(std::size_t /*input*/, const EdgeUse& /*use*/) const { return false; }
  // Builds primitives and says what memory is needed. uses: which gradients of its inputs this node
  // will write, and how.
  virtual NodeClaims plan(const std::vector<EdgeUse>& /*uses*/) { return {}; }
  virtual void bind(const NodeMemory& memory) { memory_ = memory; }  // the addresses, once
  virtual void forward() = 0;
  virtual void backward() = 0;
  // How it is computed, in words for a list that counts, where there are several ways: "batch norms
  // by cuDNN".
  virtual std::string way() const { return ""; }
  // What a pass forward changes on the host, where forward() computes on a GPU.
  virtual void count_forward() {}
  // The library primitives of this node alone, for the floor of `bench step`; nothing by default.
  virtual void forward_floor() {}
  virtual void backward_floor() {}

 protected:
  NodeMemory memory_;  // from bind() on

 private:
  std::string name_;
};

// Work that nodes share, which on a GPU would be little but a launch for each: in front of passes
// forward, or behind what goes backward. Its memory is its own from the start of the one to the end
// of the other. Nodes add to it while they plan, and read their places while they bind.
class SharedWork {
 public:
  virtual ~SharedWork() = default;
  virtual void node_planned() = 0;      // after each node's plan(), in their order
  virtual std::size_t plan() = 0;       // after all nodes': bytes of memory
  virtual void bind(void* memory) = 0;  // before the nodes'
  virtual void nodes_bound() = 0;
  virtual void run(int first, int end) = 0;  // what nodes [first, end) added
};

struct NodeInput {
  TensorId tensor = -1;
  bool read_in_backward = false;  // the value must still be there
  // The gradient of this input may take the place of the output's gradient: backward reads each
  // element of it before, or while, it writes the same element here.
  bool gradient_in_place = false;
  // Where others contributed to this input's gradient before, the sum goes to a place of its own: a
  // library may write a result in several passes.
  bool adds_elsewhere = false;
  // The input, and its gradient, may lie in a larger tensor: images apart where there are blocks of
  // channels, rows elsewhere, all by the same stride (Tensor::image_stride, row_stride).
  bool spaced = false;
  // The input may lie in the output, as its channels from `joined_at` on: its producer then writes
  // it there, and reads its gradient there, and this node has nothing to do for it (Tensor::data
  // says so). -1: it may not.
  std::int64_t joined_at = -1;
  // Backward can make the gradient 0 where the input is not above 0, so that a ReLU which made the
  // input need not: its own, and what others contributed where it adds elsewhere.
  bool masks_gradient = false;
};

struct NodeOutput {
  std::string name;
  Shape shape;
  bool read_in_backward = false;
  DType dtype = DType::kFloat32;
  // The output, and its gradient, may lie in a larger tensor, as an input may.
  bool spaced = false;
  // The output may lie in the one input, as its channels or features from `part_at` on, and its
  // gradient in that one's: the node then has nothing to do (Tensor::data says so). -1: it may not.
  std::int64_t part_at = -1;
  // The output is a ReLU's, and backward can take a gradient that is 0 already where it is 0; then
  // it has use for the gradient's sums over each channel too.
  bool takes_masked_gradient = false;
};

class Program {
 public:
  struct Options {
    bool gradients = false;       // record for training: backward() exists
    bool input_gradient = false;  // also dL/d input
    bool keep_all = false;  // no sharing of memory: every value and gradient can be read after a
                            // step (tests)
    Precision precision = Precision::kFp32;  // on a GPU; the CPU has this one alone
    // Recorded as on a GPU though the context may have none: to be looked at (Node::graphs), not
    // planned.
    bool for_gpu = false;
    // Beginnings of the names of parameters that do not learn. Nothing is computed backward
    // that only they would need; their gradients stay 0.
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
  // block: channels side by side for images (engine/tape/layout.h); 0 is NHWC.
  TensorId input(const std::string& name, const Shape& shape, std::int64_t block = 0,
                 DType dtype = DType::kFloat32);
  // Has an input that nobody reads yet lie in cells of its pixels, as a tensor of that shape.
  void gather_pixels(TensorId input, const SpaceToDepth& cells, const Shape& shape);
  TensorId append(std::unique_ptr<Node> node, const std::vector<NodeInput>& inputs,
                  NodeOutput output);
  void set_output(TensorId tensor) { output_ = tensor; }
  enum class When { kBeforeForward, kAfterBackward };
  // The shared work of that type, which the first node that asks makes.
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
  // Null where pixels lie by themselves.
  const SpaceToDepth* cells(TensorId input) const {
    return state(input).cells ? &*state(input).cells : nullptr;
  }
  // Of an input's images, (N, H, W, C), however its pixels lie.
  const Shape& image_shape(TensorId input) const {
    return cells(input) != nullptr ? cells(input)->image : shape(input);
  }
  // Of images, from lay_out() on; of inputs always.
  std::int64_t channel_block(TensorId id) const { return state(id).block; }
  DType dtype(TensorId id) const { return state(id).dtype; }
  bool wants_gradient(TensorId id) const { return state(id).wants_gradient; }

  // Planning --------------------------------------------------------------------------------------
  // In which layout each image lies, which tensors lie in others, when each lives and how each
  // gradient is written: what plan() begins with. Where two layouts meet it adds a node that
  // reorders.
  void lay_out();
  std::vector<EdgeUse> uses(int node) const;  // from lay_out() on
  // room: asked before anything is allocated, with what footprint() will be; throws where that is
  // too much.
  void plan(const std::function<void(const Footprint&)>& room = {});
  Footprint footprint() const { return footprint_; }

  // Running ---------------------------------------------------------------------------------------
  void forward();
  void backward();  // reads gradient(output), writes the gradient of every parameter that learns
  // The same node by node, for who does something in between: forward, begin_forward() comes first;
  // backward, from the last to the first, the gradients of parameters from parameters_begin(first)
  // to parameters_begin(end) are there after complete_gradients(first, end).
  void begin_forward();
  void backward(int node);
  void complete_gradients(int first, int end);
  std::int64_t parameters_begin(int node) const {
    return parameters_begin_[static_cast<std::size_t>(node)];
  }
  // On a GPU, to be called once for every forward pass that is carried out: a captured pass is
  // replayed without what nodes change on the host (Node::count_forward).
  void count_forward();
  // Of any type; on a GPU in its memory. The gradient's data is null where it is not wanted.
  Tensor value_of(TensorId id) const;
  Tensor gradient_of(TensorId id) const;
  // Of float32 tensors.
  float* value(TensorId id) const { return value_of(id).as<float>(); }
  float* gradient(TensorId id) const { return gradient_of(id).as<float>(); }

  // Looking ---------------------------------------------------------------------------------------
  const std::vector<std::unique_ptr<Node>>& nodes() const { return nodes_; }
  // How many nodes are computed in which way (Node::way()): "53 convolutions by cuDNN, ..."; empty
  // where no node has a choice.
  std::string ways() const;
  // What a node said about its tensors when it was appended.
  std::vector<NodeInput> inputs_of(int node) const;
  TensorId output_of(int node) const { return outputs_[static_cast<std::size_t>(node)]; }
  bool output_read_in_backward(int node) const {
    return state(output_of(node)).read_in_backward_by_producer;
  }
  const Node* producer(TensorId id) const;  // null: an input of the program
  // The tensor a node of that name writes; -1 where there is none.
  TensorId find(const std::string& name) const;
  // A tensor's value, from a GPU too, as float32 in the order of a tensor of that layout by itself,
  // wherever it lies. Waits.
  std::vector<float> read(TensorId id) const;
  // Any tensor or gradient as NHWC (images) or as it is. stored: on the host, as the program stores
  // it; out: as many floats as the shape has elements.
  void copy_out(TensorId id, const float* stored, float* out) const;

 private:
  // A tensor lies in another one, so many elements behind the start of each row or image.
  struct Within {
    TensorId whole = -1;  // -1: in none
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
    int others = -1;   // of what it adds
    int sums = -1;     // of the sums that it writes
    EdgeUse use() const { return {storage >= 0, accumulate, mask, sums >= 0}; }
  };

  const TensorState& state(TensorId id) const { return tensors_[static_cast<std::size_t>(id)]; }
  TensorState& state(TensorId id) { return tensors_[static_cast<std::size_t>(id)]; }
  void* at(int storage) const;  // null for -1
  // in: &TensorState::value_in or &TensorState::gradient_in.
  Tensor view(const TensorState& t, int storage, Within TensorState::*in) const;
  // Elements in front of a channel in a row of t, or in an image where there are blocks.
  static std::int64_t elements_before(const TensorState& t, std::int64_t channel);
  // Elements side by side: of a row, or of an image where there are blocks of channels.
  static std::int64_t run_of(const TensorState& t);
  static bool is_dense(const TensorState& t, const Tensor& view);
  // Does anything learn in a node that is being appended to `inputs`, or before it?
  bool learns(const std::vector<NodeInput>& inputs);
  bool goes_backward(int node) const { return state(output_of(node)).wants_gradient; }
  // Lifetimes. Time of node i: i in forward, 2 * count - i in backward; the loss sits between, at
  // `count`.
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
  std::vector<std::int64_t> parameters_begin_;  // by node: in the flat buffers
  std::int64_t parameters_end_ = 0;             // of the nodes so far
  std::size_t parameters_seen_ = 0;             // entries of them
  TensorId output_ = -1;
  std::vector<std::unique_ptr<SharedWork>> before_forward_, after_backward_;
  std::vector<Lifetime> storages_;    // of tensors and what nodes keep
  std::vector<std::size_t> offsets_;  // by storage
  Footprint footprint_;
  mutable PinnedBuffer read_through_;        // where read() takes values of a GPU
  std::vector<std::string> backward_names_;  // by node, for profilers
  Memory arena_, workspace_;
};

}  // namespace rk
