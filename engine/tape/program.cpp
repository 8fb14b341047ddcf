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
  return tape_.add({.name = name,
                    .shape = shape,
                    .block = shape.rank() == 4 && block == 0 ? shape[3] : block,
                    .dtype = dtype,
                    .wants_gradient = options_.gradients && options_.input_gradient});
}

void Program::gather_pixels(TensorId input, const SpaceToDepth& cells, const Shape& shape) {
  RecordedTensor& t = tape_.tensor(input);
  const bool read = std::ranges::any_of(tape_.links, [&](const Tape::Links& node) {
    return std::ranges::find(node.inputs, input, &NodeInput::tensor) != node.inputs.end();
  });
  expect(t.producer < 0 && !read && !t.cells, "[{}] expected an input that nobody reads", t.name);
  t.cells = cells;
  t.shape = shape;
  t.block = shape[3];
}

bool Program::learns(const std::vector<NodeInput>& inputs) {
  const std::span<const Parameters::Entry> all = parameters_.entries();
  const auto own = all.subspan(std::exchange(parameters_seen_, all.size()));
  // With nothing frozen, every output wants a gradient, because parameters precede every node.
  return !parameters_.freezes_any() || !std::ranges::all_of(own, &Parameters::Entry::frozen) ||
         std::ranges::any_of(inputs, [&](const NodeInput& i) { return wants_gradient(i.tensor); });
}

TensorId Program::append(std::unique_ptr<Node> node, const std::vector<NodeInput>& inputs,
                         NodeOutput output) {
  const std::int64_t begin =
      std::exchange(parameters_end_, static_cast<std::int64_t>(parameters_.flat_elements()));
  return tape_.append(std::move(node), inputs, begin,
                      {.name = std::move(output.name),
                       .shape = output.shape,
                       .dtype = output.dtype,
                       .wants_gradient = options_.gradients && learns(inputs),
                       .read_in_backward = output.read_in_backward,
                       .takes_masked_gradient = output.takes_masked_gradient,
                       .may_be_strided = output.may_be_strided});
}

void Program::lay_out() {
  if (laid_out_) return;
  expect(tape_.output >= 0, "[program] expected set_output() before plan()");
  laid_out_ = true;
  tape_.choose_layouts(context_.threads(), on_gpu());  // which may add nodes
  if (!options_.keep_all) tape_.place_joined();
  for (int n = 0; n < tape_.count(); ++n) {
    tape_.nodes[static_cast<std::size_t>(n)]->set_row_stride(
        tape_.view(tape_.at(n).output, nullptr).row_stride);
  }
  storage_ = StoragePlan(tape_, options_.gradients, options_.keep_all);
}

std::vector<EdgeUse> Program::uses(int node) const {
  std::vector<EdgeUse> uses;
  for (const StoragePlan::EdgeStorage& e : storage_.edges_of(node)) uses.push_back(e.use());
  return uses;
}

void Program::plan(const std::function<void(const Footprint&)>& room) {
  expect(context_.on_gpu() == on_gpu(), "[program] recorded for a GPU, it is planned without one");
  lay_out();
  parameters_.allocate(context_);
  const std::vector<StorageId> saved = plan_nodes();
  const std::vector<PlacedWork> shared = plan_shared_works();
  storage_.place();
  allocate(room);
  for (const auto& [work, storage] : shared) {
    Carver memory(at(storage));
    work->carve(memory);
  }
  for (int n = 0; n < tape_.count(); ++n) bind_node(n, saved[static_cast<std::size_t>(n)]);
  for (const auto& [work, storage] : shared) work->nodes_bound();
}

std::vector<StorageId> Program::plan_nodes() {
  std::vector<StorageId> saved(tape_.nodes.size(), -1);
  for (int n = 0; n < tape_.count(); ++n) {
    Node& node = *tape_.nodes[static_cast<std::size_t>(n)];
    node.plan(uses(n));
    Carver kept, workspace;
    node.carve(kept, workspace);
    if (kept.used() > 0) {
      const int last = tape_.goes_backward(n) ? storage_.backward_time(n) : n;
      saved[static_cast<std::size_t>(n)] = storage_.add({kept.used(), n, last});
    }
    footprint_.workspace_bytes = std::max(footprint_.workspace_bytes, workspace.used());
    for (const auto* works : {&before_forward_, &after_backward_}) {
      for (const auto& work : *works) work->node_planned();
    }
  }
  return saved;
}

std::vector<Program::PlacedWork> Program::plan_shared_works() {
  std::vector<PlacedWork> shared;
  const auto add = [&](const std::unique_ptr<SharedWork>& work, int first) {
    Carver memory;
    work->carve(memory);
    shared.push_back({work.get(), storage_.add({memory.used(), first, storage_.end()})});
  };
  for (const auto& work : before_forward_) add(work, 0);
  for (const auto& work : after_backward_) add(work, storage_.backward_time(tape_.count() - 1));
  return shared;
}

void Program::allocate(const std::function<void(const Footprint&)>& room) {
  footprint_.arena_bytes = storage_.bytes();
  if (room) room(footprint_);
  arena_ = context_.allocate(footprint_.arena_bytes);
  workspace_ = context_.allocate(footprint_.workspace_bytes);
}

void Program::bind_node(int node, StorageId saved) {
  NodeMemory memory;
  const Tape::Links& links = tape_.at(node);
  const std::vector<StoragePlan::EdgeStorage>& edges = storage_.edges_of(node);
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const TensorId input = links.inputs[i].tensor;
    const StoragePlan::EdgeStorage& edge = edges[i];
    memory.inputs.push_back(value_of(input));
    memory.input_gradients.push_back(tape_.view(input, at(edge.gradient)));
    memory.uses.push_back(edge.use());
    memory.addends.push_back(tape_.view(input, at(edge.others)));
    memory.gradient_sums.push_back(static_cast<float*>(at(edge.sums)));
  }
  const StoragePlan::TensorStorage& out = storage_.of(links.output);
  memory.output = value_of(links.output);
  memory.output_gradient = gradient_of(links.output);
  memory.output_gradient_masked = out.gradient_masked;
  memory.output_gradient_sums = static_cast<const float*>(at(out.gradient_sums));
  Node& bound = *tape_.nodes[static_cast<std::size_t>(node)];
  Carver kept(at(saved)), workspace(workspace_.data());
  bound.carve(kept, workspace);
  bound.bind(memory);
  backward_names_.push_back(bound.name() + " backward");
}

void Program::begin_forward() {
  const ProfileRange range("before forward");
  for (const auto& work : before_forward_) work->run(0, tape_.count());
}

void Program::forward() {
  begin_forward();
  for (const auto& node : tape_.nodes) {
    const ProfileRange range(node->name());
    node->forward();
  }
}

void Program::count_forward() {
  for (const auto& node : tape_.nodes) node->count_forward();
}

void Program::backward() {
  const int count = tape_.count();
  for (int n = count - 1; n >= 0; --n) backward(n);
  complete_gradients(0, count);
}

void Program::complete_gradients(int first, int end) {
  const ProfileRange range("after backward");
  for (const auto& work : after_backward_) work->run(first, end);
}

void Program::backward(int node) {
  if (!tape_.goes_backward(node)) return;
  const ProfileRange range(backward_names_[static_cast<std::size_t>(node)]);
  tape_.nodes[static_cast<std::size_t>(node)]->backward();
}

void* Program::at(StorageId storage) const {
  if (storage < 0) return nullptr;
  return static_cast<std::byte*>(arena_.data()) + storage_.offset(storage);
}

Tensor Program::value_of(TensorId id) const { return tape_.view(id, at(storage_.of(id).value)); }

Tensor Program::gradient_of(TensorId id) const {
  return tape_.view(id, at(storage_.of(id).gradient));
}

const Node* Program::producer(TensorId id) const {
  const int node = tape_.tensor(id).producer;
  return node < 0 ? nullptr : tape_.nodes[static_cast<std::size_t>(node)].get();
}

std::string Program::implementations() const {
  std::map<std::string, int> counts;
  for (const auto& node : tape_.nodes) {
    if (const std::string way = node->implementation(); !way.empty()) ++counts[way];
  }
  std::string text;
  for (const auto& [way, count] : counts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, way);
  }
  return text;
}

TensorId Program::find(const std::string& name) const {
  const auto found = std::ranges::find(tape_.tensors, name, &RecordedTensor::name);
  return found == tape_.tensors.end() ? -1 : static_cast<TensorId>(found - tape_.tensors.begin());
}

std::vector<float> Program::read(TensorId id) const {
  const Tensor t = value_of(id);
  const std::int64_t block = tape_.tensor(id).block;
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
