// One operation of a Program (engine/tape/program.h): what it says of its inputs and its output
// when it is appended, what it asks for while it is planned, and the addresses it then works on.
#pragma once

#include "engine/base/dtype.h"
#include "engine/base/shape.h"
#include "engine/device/carver.h"
#include "engine/tape/tensor.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rk {

using TensorId = int;

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
  // The output and its gradient may lie in a larger tensor that joins it with others, with one
  // stride between all images (channels in blocks) or between all rows (otherwise):
  // Tensor::image_stride, row_stride. Not for a node whose own inputs may lie in its output.
  bool may_be_strided = false;
  // The output is a ReLU's, and backward accepts a gradient that is already 0 where the output is
  // 0; it then also has a use for that gradient's sums over each channel.
  bool takes_masked_gradient = false;
};

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
};

// Adjacent channels in the images that a node reads and writes (engine/tape/layout.h); all of them
// for NHWC, 0 for tensors that are not images.
struct ChannelBlocks {
  std::vector<std::int64_t> inputs;
  std::int64_t output = 0;
};

class Node {
 public:
  explicit Node(std::string name) : name_(std::move(name)) {}
  virtual ~Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Without the characters that engine/driver/profile.h excludes.
  const std::string& name() const { return name_; }
  // What the layer is, for tables that sum up nodes of one kind: "convolution".
  virtual std::string_view kind() const = 0;
  // Chooses the node's layouts. On entry, `blocks` holds the inputs' present layouts, and the first
  // input's layout for the output; the node changes what it wants otherwise, and the program
  // reorders the inputs accordingly. Called once, before set_row_stride().
  virtual void choose_layouts(ChannelBlocks& /*blocks*/) {}
  // If the output may lie in a larger tensor (NodeOutput::may_be_strided): receives the distance,
  // in elements, between rows of the output and of its gradient. Called before plan().
  virtual void set_row_stride(std::int64_t /*row_stride*/) {}
  // Whether backward writes, together with the gradient of that input, the gradient's sums over
  // each channel. Asked once, after set_row_stride(), if another node uses them.
  virtual bool sums_gradient(std::size_t /*input*/, const EdgeUse& /*use*/) const { return false; }
  // Builds primitives. uses: which gradients of its inputs this node will write, and how.
  virtual void plan(const std::vector<EdgeUse>& /*uses*/) {}
  // Takes the node's own memory: `saved` is kept from forward to backward, `workspace` is free
  // between nodes. Called after plan() without memory, which tells how much is needed, and with it
  // before bind().
  virtual void carve(Carver& /*saved*/, Carver& /*workspace*/) {}
  virtual void bind(const NodeMemory& memory) { memory_ = memory; }  // the addresses, once
  virtual void forward() = 0;
  virtual void backward() = 0;
  // The implementation in use, if there are several, as words for a list that counts them: "batch
  // norms by cuDNN".
  virtual std::string implementation() const { return ""; }
  // Makes the changes on the host that belong to a forward pass. They are not part of forward(),
  // which a GPU may replay and which chunks of a batch repeat.
  virtual void count_forward() {}
  // Run the library primitives of this node alone, for the floor of `bench step`; default: nothing.
  virtual void forward_floor() {}
  virtual void backward_floor() {}

 protected:
  NodeMemory memory_;  // valid from bind() on

 private:
  std::string name_;
};

}  // namespace rk
