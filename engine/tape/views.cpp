// Part of Program (engine/tape/program.h): decides which tensors lie inside others, so that a node
// need not copy: an input of a join inside the result (NodeInput::joined_at), a part inside the
// whole (NodeOutput::part_at).
#include "engine/tape/program.h"

#include <algorithm>
#include <optional>

namespace rk {
namespace {

std::int64_t row_of(const Shape& shape) { return shape[shape.rank() - 1]; }
std::int64_t rows_of_image(const Shape& shape) {
  std::int64_t rows = 1;
  for (int axis = 1; axis < shape.rank() - 1; ++axis) rows *= shape[axis];
  return rows;
}

// A tensor of dense's shape inside `whole`: either part of each of its rows or images, or all its
// elements with other dimensions. Empty if no strides describe that.
std::optional<Tensor> laid_in(const Tensor& whole, bool whole_is_dense, Tensor dense) {
  const auto strided = [&](std::int64_t row, std::int64_t image) {
    dense.row_stride = row;
    dense.image_stride = image;
    return dense;
  };
  bool same_rows = whole.shape.rank() == dense.shape.rank();
  for (int axis = 0; same_rows && axis < dense.shape.rank() - 1; ++axis) {
    same_rows = whole.shape[axis] == dense.shape[axis];
  }
  if (same_rows) return strided(whole.row_stride, whole.image_stride);
  if (whole_is_dense) return dense;
  const bool even = whole.image_stride == rows_of_image(whole.shape) * whole.row_stride;
  if (!even || row_of(whole.shape) != row_of(dense.shape)) return {};
  return strided(whole.row_stride, rows_of_image(dense.shape) * whole.row_stride);
}

bool in_blocks(const Shape& shape, std::int64_t block) {
  return block > 0 && block < row_of(shape);
}

}  // namespace

bool Program::is_dense(const TensorState& t, const Tensor& view) {
  const Tensor dense = dense_tensor(nullptr, t.dtype, t.shape, t.block);
  return view.row_stride == dense.row_stride && view.image_stride == dense.image_stride;
}

std::int64_t Program::run_of(const TensorState& t) {
  return in_blocks(t.shape, t.block) ? t.shape.elements() / t.shape[0] : row_of(t.shape);
}

std::int64_t Program::elements_before(const TensorState& t, std::int64_t channel) {
  return in_blocks(t.shape, t.block) ? channel * rows_of_image(t.shape) : channel;
}

Tensor Program::view(const TensorState& t, int storage, Within TensorState::*in) const {
  const Tensor dense = dense_tensor(at(storage), t.dtype, t.shape, t.block);
  const Within& within = t.*in;
  if (within.whole < 0) return dense;
  const TensorState& holder = state(within.whole);
  const Tensor whole = view(holder, storage, in);
  Tensor part = *laid_in(whole, is_dense(holder, whole), dense);
  if (whole.data != nullptr) {
    part.data = static_cast<std::byte*>(whole.data) +
                static_cast<std::size_t>(within.at) * size_of(t.dtype);
  }
  return part;
}

Program::Readers Program::readers() const {
  Readers readers(tensors_.size());
  for (std::size_t n = 0; n < edges_.size(); ++n) {
    for (const Edge& e : edges_[n]) {
      readers[static_cast<std::size_t>(e.input.tensor)].push_back({static_cast<int>(n), &e.input});
    }
  }
  return readers;
}

void Program::plan_views() {
  if (options_.keep_all) return;
  const Readers all = readers();
  plan_joins(all);
  plan_parts(all);
}

// A tensor lies inside the tensor that joins it with others if its producer can write it there and
// nobody else reads it.
void Program::plan_joins(const Readers& readers) {
  for (std::size_t id = 0; id < tensors_.size(); ++id) {
    TensorState& t = tensors_[id];
    if (!t.spaced || readers[id].size() != 1 || static_cast<TensorId>(id) == output_) continue;
    const auto [node, input] = readers[id].front();
    const TensorId joined = output_of(node);
    // Value and gradient take the same place, so both tensors must have a gradient, or neither.
    if (input->joined_at < 0 || t.wants_gradient != state(joined).wants_gradient) continue;
    const std::int64_t at = elements_before(state(joined), input->joined_at);
    t.value_in = t.gradient_in = {joined, at};
  }
}

// A part's value lies inside the whole, whose value nobody changes, if the part's readers accept
// that. Goes in recording order, so that the place of the whole is already settled.
void Program::plan_parts(const Readers& readers) {
  for (std::size_t id = 0; id < tensors_.size(); ++id) {
    TensorState& t = tensors_[id];
    if (t.part_at >= 0) {
      const TensorId whole = edges_[static_cast<std::size_t>(t.producer)][0].input.tensor;
      const Within within{whole, elements_before(state(whole), t.part_at)};
      const auto part = static_cast<TensorId>(id);
      if (can_lie(part, within, &TensorState::value_in, readers[id])) t.value_in = within;
    }
    share_gradient(static_cast<TensorId>(id), readers);
  }
}

// Whether a tensor can lie there, and all its readers accept that.
bool Program::can_lie(TensorId id, const Within& within, Within TensorState::*in,
                      const std::vector<Reader>& readers) const {
  if (id == output_) return false;
  const TensorState &t = state(id), &holder = state(within.whole);
  const Tensor whole = view(holder, -1, in);
  const auto part =
      laid_in(whole, is_dense(holder, whole), dense_tensor(nullptr, t.dtype, t.shape, t.block));
  if (!part) return false;
  if (is_dense(t, *part)) return true;
  // A part that is a single block of several has adjacent rows but images farther apart: not even.
  const bool even = part->image_stride == rows_of_image(t.shape) * part->row_stride;
  return (in_blocks(t.shape, t.block) || even) &&
         std::ranges::all_of(readers, [](const Reader& r) { return r.input->spaced; });
}

// The gradients of a tensor's parts lie inside the tensor's own gradient if only the parts read the
// tensor and every element belongs to exactly one of them: then the first writer of a part's
// gradient is also the first writer of these elements.
void Program::share_gradient(TensorId whole, const Readers& readers) {
  const TensorState& t = state(whole);
  if (!t.wants_gradient || whole == output_) return;
  std::vector<TensorId> parts;
  for (const Reader& reader : readers[static_cast<std::size_t>(whole)]) {
    const TensorId part = output_of(reader.node);
    const TensorState& p = state(part);
    const std::vector<Reader>& of_part = readers[static_cast<std::size_t>(part)];
    const bool elsewhere =
        std::ranges::any_of(of_part, [](const Reader& r) { return r.input->adds_elsewhere; });
    if (p.part_at < 0 || elsewhere ||
        !can_lie(part, {whole, 0}, &TensorState::gradient_in, of_part)) {
      return;
    }
    parts.push_back(part);
  }
  if (parts.empty()) return;
  std::ranges::sort(parts, {}, [&](TensorId part) { return state(part).part_at; });
  const std::int64_t run = run_of(t);
  std::int64_t end = 0;
  for (const TensorId part : parts) {
    const TensorState& p = state(part);
    if (elements_before(t, p.part_at) != end) return;
    end += p.shape.elements() * run / t.shape.elements();
  }
  if (end != run) return;
  for (const TensorId part : parts) {
    state(part).gradient_in = {whole, elements_before(t, state(part).part_at)};
  }
}

// The storage of a gradient that lies inside another one.
int Program::storage_in_whole(const TensorState& t, int time) {
  TensorState& whole = state(t.gradient_in.whole);
  if (whole.gradient_storage < 0) {
    whole.gradient_storage = whole.gradient_in.whole >= 0
                                 ? storage_in_whole(whole, time)
                                 : add_storage({whole.bytes(), time, time});
  }
  return whole.gradient_storage;
}

}  // namespace rk
