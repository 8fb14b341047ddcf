// What a program has recorded (engine/tape/program.h): its tensors, its nodes, and which tensors
// each node reads and writes; and how the tensors are laid out in relation to one another.
#pragma once

#include "engine/base/dtype.h"
#include "engine/base/shape.h"
#include "engine/tape/layout.h"
#include "engine/tape/node.h"
#include "engine/tape/tensor.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rk {

struct RecordedTensor {
  // The place of a tensor, and of its gradient, inside another one that lies in none itself: `at`
  // elements after the start of each row, or of each image if channels are in blocks.
  struct Within {
    TensorId whole = -1;  // -1: not inside another
    std::int64_t at = 0;
  };

  std::string name = {};
  Shape shape = {};
  std::int64_t block = 0;  // adjacent channels of images
  DType dtype = DType::kFloat32;
  std::optional<SpaceToDepth> cells = {};  // of inputs: how their pixels were gathered
  int producer = -1;                       // node; -1: an input of the program
  bool wants_gradient = false;
  // What the producer said of its output (NodeOutput).
  bool read_in_backward = false;
  bool takes_masked_gradient = false;
  bool may_be_strided = false;
  Within within = {};

  std::size_t bytes() const { return static_cast<std::size_t>(shape.elements()) * size_of(dtype); }
};

struct Tape {
  // A node's place in the recording.
  struct Links {
    std::vector<NodeInput> inputs;
    TensorId output = -1;
    std::int64_t parameters_begin = 0;  // offset in the flat buffers; the node before ends there
  };

  std::vector<RecordedTensor> tensors;
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<Links> links;  // by node
  TensorId output = -1;      // of the program

  const RecordedTensor& tensor(TensorId id) const { return tensors[static_cast<std::size_t>(id)]; }
  RecordedTensor& tensor(TensorId id) { return tensors[static_cast<std::size_t>(id)]; }
  const Links& at(int node) const { return links[static_cast<std::size_t>(node)]; }
  int count() const { return static_cast<int>(nodes.size()); }
  bool goes_backward(int node) const { return tensor(at(node).output).wants_gradient; }

  TensorId add(RecordedTensor t);
  // Appends a node and its result, whose producer it sets.
  TensorId append(std::unique_ptr<Node> node, std::vector<NodeInput> inputs,
                  std::int64_t parameters_begin, RecordedTensor result);

  // Gives every image the layout that its producer wants, with an additional reorder node
  // (engine/tape/reorder.h) for readers that want another one. On a GPU all are NHWC.
  void choose_layouts(int threads, bool on_gpu);
  // Puts the inputs of joins inside their results (NodeInput::joined_at) where producers can write
  // them there, so that the joins need not copy them.
  void place_joined();
  // The tensor, or its gradient, in `storage`: its own memory, or that of the tensor it lies in.
  Tensor view(TensorId id, void* storage) const;

 private:
  TensorId append_reordered(TensorId id, std::int64_t block, std::int64_t parameters_begin,
                            int threads);
};

}  // namespace rk
