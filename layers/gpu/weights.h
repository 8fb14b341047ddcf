// Converts between a program's parameters on a GPU and the weights its convolutions compute with,
// for all of them at once (kernels/blocks/weights_block.h, folded_block.h): before every forward
// pass, parameters to T, with a frozen batch normalisation folded in if there is one; after
// backward, gradients to those of the parameters.
#pragma once

#include "engine/base/integers.h"
#include "engine/tape/program.h"
#include "kernels/blocks/folded_block.h"
#include "kernels/blocks/weights_block.h"
#include "layers/conv2d.h"

#include <vector>

namespace rk::gpu {

inline FilterShape filter_shape(const ConvolutionGeometry& geometry) {
  const Shape& weight = geometry.weight;
  return {.outputs = static_cast<int>(weight[0]),
          .taps = static_cast<int>(weight[2] * weight[3]),
          .inputs = static_cast<int>(weight[1]),
          .padded_inputs = static_cast<int>(geometry.x[3]),
          .cell = static_cast<int>(geometry.cell),
          .columns = static_cast<int>(weight[3])};
}

// Runs Kernel over the items that nodes added.
template <class Kernel> class OverFilters final : public SharedWork {
 public:
  using Item = typename Kernel::Item;
  explicit OverFilters(const Context& context) : context_(context) {}

  // To be called in Node::plan(). Returns the item's number; its memory is filled in later. used:
  // whether the item takes part without use().
  int add(const Item& item, bool used);
  // Available from Node::bind() on, where the node may complete the item.
  Item& operator[](int number) { return items_[at(number)]; }
  void use(int number) { used_[at(number)] = true; }

  void node_planned() override { of_nodes_.push_back(items_.size()); }
  void carve(Carver& memory) override;
  void nodes_bound() override;
  void run(int first, int end) override;

 private:
  int parts_before(int node) const;

  const Context& context_;
  std::vector<Item> items_;
  std::vector<bool> used_;             // by item
  std::vector<std::size_t> of_nodes_;  // by node: items of this node and of those before
  std::vector<int> parts_end_;         // by item: parts of this item and of those before
  Memory device_items_, device_parts_;
};

template <class T> using CastWeights = OverFilters<PrepareWeights<T>>;
template <class T> CastWeights<T>& cast_weights(Program& program) {
  return program.shared<CastWeights<T>>(Program::When::kBeforeForward);
}
template <class T> using WideGradients = OverFilters<WidenGradients<T>>;
template <class T> WideGradients<T>& wide_gradients(Program& program) {
  return program.shared<WideGradients<T>>(Program::When::kAfterBackward);
}
template <class T> using UnfoldedGradients = OverFilters<FoldedGradients<T>>;
template <class T> UnfoldedGradients<T>& unfolded_gradients(Program& program) {
  return program.shared<UnfoldedGradients<T>>(Program::When::kAfterBackward);
}

}  // namespace rk::gpu
