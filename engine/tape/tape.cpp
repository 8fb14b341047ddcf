#include "engine/tape/tape.h"

#include <utility>

namespace rk {
namespace {

// Elements before a channel in a row of the image, or in the whole image if channels are in blocks.
std::int64_t elements_before(const Shape& image, std::int64_t block, std::int64_t channel) {
  return block < image[3] ? channel * image[1] * image[2] : channel;
}

}  // namespace

TensorId Tape::add(RecordedTensor t) {
  tensors.push_back(std::move(t));
  return static_cast<TensorId>(tensors.size()) - 1;
}

TensorId Tape::append(std::unique_ptr<Node> node, std::vector<NodeInput> inputs,
                      std::int64_t parameters_begin, RecordedTensor result) {
  result.producer = count();
  const TensorId id = add(std::move(result));
  nodes.push_back(std::move(node));
  links.push_back({std::move(inputs), id, parameters_begin});
  return id;
}

Tensor Tape::view(TensorId id, void* storage) const {
  const RecordedTensor& t = tensor(id);
  Tensor view = dense_tensor(storage, t.dtype, t.shape, t.block);
  if (t.within.whole < 0) return view;
  const RecordedTensor& holder = tensor(t.within.whole);
  const Tensor whole = dense_tensor(nullptr, holder.dtype, holder.shape, holder.block);
  view.row_stride = whole.row_stride;
  view.image_stride = whole.image_stride;
  if (view.data != nullptr) {
    view.data = static_cast<std::byte*>(view.data) +
                static_cast<std::size_t>(t.within.at) * size_of(t.dtype);
  }
  return view;
}

// A tensor lies inside the tensor that joins it with others if its producer can write it there and
// nobody else reads it.
void Tape::place_joined() {
  std::vector<int> readers(tensors.size());
  for (const Links& node : links) {
    for (const NodeInput& input : node.inputs) ++readers[static_cast<std::size_t>(input.tensor)];
  }
  for (const Links& node : links) {
    const RecordedTensor& joined = tensor(node.output);
    for (const NodeInput& input : node.inputs) {
      RecordedTensor& t = tensor(input.tensor);
      if (input.joined_at < 0 || !t.may_be_strided || input.tensor == output) continue;
      if (readers[static_cast<std::size_t>(input.tensor)] != 1) continue;
      // Value and gradient take the same place, so both tensors must have a gradient, or neither.
      if (t.wants_gradient != joined.wants_gradient) continue;
      t.within = {node.output, elements_before(joined.shape, joined.block, input.joined_at)};
    }
  }
}

}  // namespace rk
