#include "engine/tape/program.h"

#include "engine/base/error.h"
#include "engine/base/half.h"
#include "engine/device/pinned_buffer.h"
#include "engine/driver/profile.h"
#include "engine/tape/layout.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

namespace rk {

TensorId Program::input(const std::string& name, const Shape& shape, std::int64_t block,
                        DType dtype) {
  TensorState t;
  t.name = name;
  t.shape = shape;
  t.dtype = dtype;
  t.block = shape.rank() == 4 && block == 0 ? shape[3] : block;
  t.wants_gradient = options_.gradients && options_.input_gradient;
  tensors_.push_back(std::move(t));
  return static_cast<TensorId>(tensors_.size()) - 1;
}

void Program::gather_pixels(TensorId input, const SpaceToDepth& cells, const Shape& shape) {
  TensorState& t = state(input);
  const bool read = std::ranges::any_of(edges_, [&](const std::vector<Edge>& edges) {
    return std::ranges::any_of(edges, [&](const Edge& e) { return e.input.tensor == input; });
  });
  expect(t.producer < 0 && !read && !t.cells, "[{}] expected an input that nobody reads", t.name);
  t.cells = cells;
  t.shape = shape;
  t.block = shape[3];
}

bool Program::learns(const std::vector<NodeInput>& inputs) {
  const std::span<const Parameters::Entry> all = parameters_.entries();
  const auto own = all.subspan(std::exchange(parameters_seen_, all.size()));
  const auto stays = [&](const Parameters::Entry& entry) {
    return std::ranges::any_of(options_.frozen, [&](const std::string& beginning) {
      return entry.name.starts_with(beginning);
    });
  };
  // With nothing frozen, every output wants a gradient, because parameters precede every node.
  return options_.frozen.empty() || !std::ranges::all_of(own, stays) ||
         std::ranges::any_of(inputs, [&](const NodeInput& i) { return wants_gradient(i.tensor); });
}

TensorId Program::append(std::unique_ptr<Node> node, const std::vector<NodeInput>& inputs,
                         NodeOutput output) {
  TensorState t;
  t.name = std::move(output.name);
  t.shape = output.shape;
  t.dtype = output.dtype;
  t.takes_masked_gradient = output.takes_masked_gradient;
  t.spaced = output.spaced;
  t.producer = static_cast<int>(nodes_.size());
  parameters_begin_.push_back(parameters_end_);
  parameters_end_ = static_cast<std::int64_t>(parameters_.flat_elements());
  t.wants_gradient = options_.gradients && learns(inputs);
  t.read_in_backward_by_producer = output.read_in_backward;
  tensors_.push_back(std::move(t));
  nodes_.push_back(std::move(node));
  outputs_.push_back(static_cast<TensorId>(tensors_.size()) - 1);
  std::vector<Edge> edges;
  edges.reserve(inputs.size());
  for (const NodeInput& i : inputs) edges.push_back({.input = i});
  edges_.push_back(std::move(edges));
  return outputs_.back();
}

void Program::lay_out() {
  if (!storages_.empty()) return;
  expect(output_ >= 0, "[program] expected set_output() before plan()");
  choose_layouts();  // which may add nodes
  plan_joins();
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    nodes_[n]->lay_out(view(state(outputs_[n]), -1).row_stride);
  }
  plan_values();
  if (options_.gradients) plan_gradients();
}

// A value lives from its producer to its last reader, in backward too if a node reads it there.
void Program::plan_values() {
  const int count = static_cast<int>(nodes_.size());
  for (TensorState& t : tensors_) {
    if (t.within.whole < 0) t.value_storage = add_storage({t.bytes(), 2 * count, 0});
  }
  for (TensorState& t : tensors_) {
    if (t.within.whole >= 0) t.value_storage = state(t.within.whole).value_storage;
    // The caller fills the inputs before the step.
    extend(t.value_storage, std::max(t.producer, 0));
    if (t.wants_gradient && t.read_in_backward_by_producer) {
      extend(t.value_storage, backward_time(t.producer));
    }
  }
  for (int n = 0; n < count; ++n) {
    for (const Edge& e : edges_[static_cast<std::size_t>(n)]) {
      extend(state(e.input.tensor).value_storage, n);
      if (goes_backward(n) && e.input.read_in_backward) {
        extend(state(e.input.tensor).value_storage, backward_time(n));
      }
    }
  }
  // The caller reads the output after forward().
  extend(state(output_).value_storage, count);
}

// Visits nodes in backward order, in which the first writer of a gradient overwrites.
void Program::plan_gradients() {
  const int count = static_cast<int>(nodes_.size());
  state(output_).gradient_storage = add_storage({state(output_).bytes(), count, count});
  for (int n = count - 1; n >= 0; --n) {
    const TensorState& out = state(outputs_[static_cast<std::size_t>(n)]);
    if (!out.wants_gradient) continue;
    expect(out.gradient_storage >= 0, "[program] {} has no reader that gives it a gradient",
           out.name);
    const int now = backward_time(n);
    extend(out.gradient_storage, now);
    bool place_taken = options_.keep_all || out.within.whole >= 0;
    std::vector<Edge>& edges = edges_[static_cast<std::size_t>(n)];
    // If a node reads a tensor twice, its second edge adds to that tensor's gradient; so that
    // gradient must not take the place of out's gradient, which both edges read.
    const auto read_once = [&](TensorId id) {
      return std::ranges::count(edges, id, [](const Edge& e) { return e.input.tensor; }) == 1;
    };
    for (Edge& e : edges) {
      TensorState& in = state(e.input.tensor);
      if (!in.wants_gradient) continue;
      if (in.gradient_storage >= 0) {
        e.accumulate = true;
        e.others = in.gradient_storage;
        extend(in.gradient_storage, now);
        if (e.input.adds_elsewhere) in.gradient_storage = add_storage({in.bytes(), now, now});
      } else if (in.within.whole >= 0) {
        in.gradient_storage = out.gradient_storage;  // out is the join
      } else if (e.input.gradient_in_place && !place_taken && in.bytes() == out.bytes() &&
                 read_once(e.input.tensor)) {
        in.gradient_storage = out.gradient_storage;
        place_taken = true;
      } else {
        in.gradient_storage = add_storage({in.bytes(), now, now});
      }
      e.storage = in.gradient_storage;
    }
  }
  plan_masks();
  for (const TensorState& t : tensors_) {
    if (t.producer < 0 && t.gradient_storage >= 0) extend(t.gradient_storage, 2 * count);
  }
}

void Program::extend(int storage, int time) {
  Lifetime& life = storages_[static_cast<std::size_t>(storage)];
  life.first = std::min(life.first, time);
  life.last = std::max(life.last, time);
}

int Program::add_storage(const Lifetime& life) {
  storages_.push_back(life);
  return static_cast<int>(storages_.size()) - 1;
}

std::vector<EdgeUse> Program::uses(int node) const {
  std::vector<EdgeUse> uses;
  for (const Edge& e : edges_[static_cast<std::size_t>(node)]) uses.push_back(e.use());
  return uses;
}

void Program::plan(const std::function<void(const Footprint&)>& room) {
  expect(context_.on_gpu() == on_gpu(), "[program] recorded for a GPU, it is planned without one");
  lay_out();
  parameters_.allocate(context_);
  const int count = static_cast<int>(nodes_.size());
  const int end = 2 * count;

  // The nodes' own memory.
  std::vector<int> saved(static_cast<std::size_t>(count), -1);
  for (int n = 0; n < count; ++n) {
    Node& node = *nodes_[static_cast<std::size_t>(n)];
    node.plan(uses(n));
    Carver kept, workspace;
    node.carve(kept, workspace);
    if (kept.used() > 0) {
      saved[static_cast<std::size_t>(n)] =
          add_storage({kept.used(), n, goes_backward(n) ? backward_time(n) : n});
    }
    footprint_.workspace_bytes = std::max(footprint_.workspace_bytes, workspace.used());
    for (const auto* works : {&before_forward_, &after_backward_}) {
      for (const auto& work : *works) work->node_planned();
    }
  }

  std::vector<std::pair<SharedWork*, int>> shared;  // with its storage
  const auto add_shared = [&](const std::unique_ptr<SharedWork>& work, int first) {
    Carver memory;
    work->carve(memory);
    shared.emplace_back(work.get(), add_storage({memory.used(), first, end}));
  };
  for (const auto& work : before_forward_) add_shared(work, 0);
  for (const auto& work : after_backward_) add_shared(work, backward_time(count - 1));

  if (options_.keep_all) {
    for (Lifetime& life : storages_) {
      life.first = 0;
      life.last = end;
    }
  }
  ArenaPlan arena = plan_arena(storages_);
  footprint_.arena_bytes = arena.bytes;
  offsets_ = std::move(arena.offsets);
  if (room) room(footprint_);
  arena_ = context_.allocate(arena.bytes);
  workspace_ = context_.allocate(footprint_.workspace_bytes);

  for (const auto& [work, storage] : shared) {
    Carver memory(at(storage));
    work->carve(memory);
  }
  for (int n = 0; n < count; ++n) {
    NodeMemory memory;
    for (const Edge& e : edges_[static_cast<std::size_t>(n)]) {
      const TensorState& in = state(e.input.tensor);
      memory.inputs.push_back(view(in, in.value_storage));
      memory.input_gradients.push_back(view(in, e.storage));
      memory.uses.push_back(e.use());
      memory.addends.push_back(view(in, e.others));
      memory.gradient_sums.push_back(static_cast<float*>(at(e.sums)));
    }
    const TensorId output = outputs_[static_cast<std::size_t>(n)];
    const TensorState& out = state(output);
    memory.output = value_of(output);
    memory.output_gradient = gradient_of(output);
    memory.output_gradient_masked = out.masked_gradient;
    memory.output_gradient_sums = static_cast<const float*>(at(out.gradient_sums));
    Node& node = *nodes_[static_cast<std::size_t>(n)];
    Carver kept(at(saved[static_cast<std::size_t>(n)])), workspace(workspace_.data());
    node.carve(kept, workspace);
    node.bind(memory);
    backward_names_.push_back(node.name() + " backward");
  }
  for (const auto& [work, storage] : shared) work->nodes_bound();
}

// In backward, the last writer of a ReLU output's gradient is the first node that reads the output,
// so that node applies the mask. The program's output is skipped: the loss alone writes its
// gradient, unmasked.
void Program::plan_masks() {
  for (std::size_t id = 0; id < tensors_.size(); ++id) {
    TensorState& t = tensors_[id];
    if (!t.takes_masked_gradient || static_cast<TensorId>(id) == output_) continue;
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      std::vector<Edge>& edges = edges_[n];
      const auto edge = std::ranges::find_if(edges, [&](const Edge& e) {
        return e.input.tensor == static_cast<TensorId>(id) && e.storage >= 0;
      });
      if (edge == edges.end()) continue;
      const NodeInput& reader = edge->input;
      edge->mask = t.masked_gradient =
          reader.masks_gradient && (!edge->accumulate || reader.adds_elsewhere);
      const auto input = static_cast<std::size_t>(edge - edges.begin());
      if (edge->mask && nodes_[n]->sums_gradient(input, edge->use())) {
        const auto bytes = static_cast<std::size_t>(t.shape[3]) * sizeof(float);
        t.gradient_sums = edge->sums = add_storage(
            {bytes, backward_time(static_cast<int>(n)), 2 * static_cast<int>(nodes_.size())});
      }
      break;
    }
  }
}

void Program::begin_forward() {
  const ProfileRange range("before forward");
  for (const auto& work : before_forward_) work->run(0, static_cast<int>(nodes_.size()));
}

void Program::forward() {
  begin_forward();
  for (const auto& node : nodes_) {
    const ProfileRange range(node->name());
    node->forward();
  }
}

void Program::count_forward() {
  for (const auto& node : nodes_) node->count_forward();
}

void Program::backward() {
  const int count = static_cast<int>(nodes_.size());
  for (int n = count - 1; n >= 0; --n) backward(n);
  complete_gradients(0, count);
}

void Program::complete_gradients(int first, int end) {
  const ProfileRange range("after backward");
  for (const auto& work : after_backward_) work->run(first, end);
}

void Program::backward(int node) {
  if (!goes_backward(node)) return;
  const ProfileRange range(backward_names_[static_cast<std::size_t>(node)]);
  nodes_[static_cast<std::size_t>(node)]->backward();
}

void* Program::at(int storage) const {
  if (storage < 0) return nullptr;
  return static_cast<std::byte*>(arena_.data()) + offsets_[static_cast<std::size_t>(storage)];
}

Tensor Program::value_of(TensorId id) const { return view(state(id), state(id).value_storage); }

Tensor Program::gradient_of(TensorId id) const {
  return view(state(id), state(id).gradient_storage);
}

std::vector<NodeInput> Program::inputs_of(int node) const {
  std::vector<NodeInput> inputs;
  for (const Edge& e : edges_[static_cast<std::size_t>(node)]) inputs.push_back(e.input);
  return inputs;
}

const Node* Program::producer(TensorId id) const {
  const int node = state(id).producer;
  return node < 0 ? nullptr : nodes_[static_cast<std::size_t>(node)].get();
}

std::string Program::implementations() const {
  std::map<std::string, int> counts;
  for (const auto& node : nodes_) {
    if (const std::string way = node->implementation(); !way.empty()) ++counts[way];
  }
  std::string text;
  for (const auto& [way, count] : counts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, way);
  }
  return text;
}

TensorId Program::find(const std::string& name) const {
  for (std::size_t id = 0; id < tensors_.size(); ++id) {
    if (tensors_[id].name == name) return static_cast<TensorId>(id);
  }
  return -1;
}

std::vector<float> Program::read(TensorId id) const {
  const Tensor t = value_of(id);
  const std::int64_t block = state(id).block;
  const std::int64_t row = block > 0 ? block : t.shape[t.shape.rank() - 1];
  const std::int64_t images = t.shape.rank() > 1 ? t.shape[0] : 1;
  const std::int64_t rows = t.shape.elements() / row / images;  // per image
  // From the first element to the last; a view has elements of the larger tensor in between.
  const std::int64_t spanned = (images - 1) * t.image_stride + (rows - 1) * t.row_stride + row;
  const std::size_t element = size_of(t.dtype);
  const std::size_t bytes = static_cast<std::size_t>(spanned) * element;
  const auto* from = static_cast<const std::byte*>(t.data);
  if (on_gpu()) {
    if (read_through_.bytes() < bytes) read_through_ = PinnedBuffer(bytes);
    auto* host = read_through_.as<std::byte>();
    context_.download(host, from, bytes);
    context_.synchronize();
    from = host;
  }
  if (spanned == t.elements()) return widened({from, bytes}, t.dtype);
  std::vector<std::byte> dense;
  dense.reserve(t.bytes());
  for (std::int64_t image = 0; image < images; ++image) {
    for (std::int64_t r = 0; r < rows; ++r) {
      const auto* begin =
          from + static_cast<std::size_t>(image * t.image_stride + r * t.row_stride) * element;
      dense.insert(dense.end(), begin, begin + static_cast<std::size_t>(row) * element);
    }
  }
  return widened(dense, t.dtype);
}

}  // namespace rk
