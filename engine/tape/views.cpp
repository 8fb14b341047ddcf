// Part of Program (engine/tape/program.h): decides which tensors lie inside others. The inputs of a
// join lie inside its result (NodeInput::joined_at), so that the node need not copy them.
#include "engine/tape/program.h"

namespace rk {
namespace {

// Elements before a channel in a row of the image, or in the whole image if channels are in blocks.
std::int64_t elements_before(const Shape& image, std::int64_t block, std::int64_t channel) {
  return block < image[3] ? channel * image[1] * image[2] : channel;
}

}  // namespace

Tensor Program::view(const TensorState& t, int storage) const {
  Tensor tensor = dense_tensor(at(storage), t.dtype, t.shape, t.block);
  if (t.within.whole < 0) return tensor;
  const TensorState& holder = state(t.within.whole);
  const Tensor whole = dense_tensor(nullptr, holder.dtype, holder.shape, holder.block);
  tensor.row_stride = whole.row_stride;
  tensor.image_stride = whole.image_stride;
  if (tensor.data != nullptr) {
    tensor.data = static_cast<std::byte*>(tensor.data) +
                  static_cast<std::size_t>(t.within.at) * size_of(t.dtype);
  }
  return tensor;
}

// A tensor lies inside the tensor that joins it with others if its producer can write it there and
// nobody else reads it.
void Program::plan_joins() {
  if (options_.keep_all) return;
  std::vector<int> readers(tensors_.size());
  for (const std::vector<Edge>& edges : edges_) {
    for (const Edge& e : edges) ++readers[static_cast<std::size_t>(e.input.tensor)];
  }
  for (std::size_t n = 0; n < edges_.size(); ++n) {
    const TensorState& joined = state(outputs_[n]);
    for (const Edge& e : edges_[n]) {
      const NodeInput& input = e.input;
      TensorState& t = state(input.tensor);
      if (input.joined_at < 0 || !t.spaced || input.tensor == output_) continue;
      if (readers[static_cast<std::size_t>(input.tensor)] != 1) continue;
      // Value and gradient take the same place, so both tensors must have a gradient, or neither.
      if (t.wants_gradient != joined.wants_gradient) continue;
      t.within = {outputs_[n], elements_before(joined.shape, joined.block, input.joined_at)};
    }
  }
}

}  // namespace rk
