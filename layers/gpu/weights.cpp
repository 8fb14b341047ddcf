#include "layers/gpu/weights.h"

#include "kernels/half_element.h"
#include "kernels/launch.h"

namespace rk::gpu {
namespace {

template <class T> void place(Filter<T>& filter, Carver& pieces) {
  filter.prepared = pieces.take<T>(filter.shape.stored());
  if (filter.gamma == nullptr) return;
  filter.bias = pieces.take<T>(filter.shape.outputs);
  filter.scale = pieces.take<float>(filter.shape.outputs);
  filter.inv_std = pieces.take<float>(filter.shape.outputs);
}

template <class T> void place(WeightGradient<T>& of, Carver& pieces) {
  of.gradient = pieces.take<T>(of.shape.stored());
}

template <class T> void place(FoldedGradient<T>& of, Carver& pieces) {
  of.d_folded = pieces.take<T>(of.shape.stored());
  of.partial = pieces.take<double>(ChannelTiles{of.rows, of.shape.outputs}.partials(1));
}

}  // namespace

template <class Kernel> int OverFilters<Kernel>::add(const Item& item, bool used) {
  items_.push_back(item);
  used_.push_back(used);
  return static_cast<int>(items_.size()) - 1;
}

template <class Kernel> void OverFilters<Kernel>::carve(Carver& memory) {
  for (Item& item : items_) place(item, memory);
}

template <class Kernel> void OverFilters<Kernel>::nodes_bound() {
  std::vector<FilterPart> parts;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (used_[i]) {
      Kernel::for_each_part(static_cast<int>(i), items_[i].shape,
                            [&](const FilterPart& part) { parts.push_back(part); });
    }
    parts_end_.push_back(static_cast<int>(parts.size()));
  }
  if (parts.empty()) return;
  device_items_ = context_.copy_of(items_);
  device_parts_ = context_.copy_of(parts);
}

template <class Kernel> int OverFilters<Kernel>::parts_before(int node) const {
  const std::size_t items = node == 0 ? 0 : of_nodes_[static_cast<std::size_t>(node) - 1];
  return items == 0 ? 0 : parts_end_[items - 1];
}

template <class Kernel> void OverFilters<Kernel>::run(int first, int end) {
  const int begin = parts_before(first), count = parts_before(end) - begin;
  if (count == 0) return;
  launch(Kernel{device_items_.as<Item>(), device_parts_.as<FilterPart>() + begin, count},
         context_.stream());
}

#define RK_INSTANTIATE(T)                        \
  template class OverFilters<PrepareWeights<T>>; \
  template class OverFilters<WidenGradients<T>>; \
  template class OverFilters<FoldedGradients<T>>
RK_INSTANTIATE(float);
RK_INSTANTIATE(Float16);
RK_INSTANTIATE(Bfloat16);
#undef RK_INSTANTIATE

}  // namespace rk::gpu
