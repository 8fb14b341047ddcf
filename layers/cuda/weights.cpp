#include "layers/cuda/weights.h"

#include "engine/device/cuda/context.h"
#include "kernels/half_element.h"
#include "kernels/launch.h"

namespace rk::gpu {
namespace {

template <class V> Memory copy_of(const Context& context, const std::vector<V>& values) {
  Memory memory = context.allocate(values.size() * sizeof(V));
  memory.upload(values.data(), memory.bytes());
  return memory;
}

}  // namespace

template <class T> void GpuWeights<T>::add(const Node& node, const Filter<T>& filter) {
  if (first_ == nullptr) first_ = &node;
  FilterPart::for_each(static_cast<int>(filters_.size()), filter.shape,
                       [&](const FilterPart& part) { parts_.push_back(part); });
  filters_.push_back(filter);
  device_filters_ = copy_of(context_, filters_);
  device_parts_ = copy_of(context_, parts_);
}

template <class T> void GpuWeights<T>::prepare(const Node& node) const {
  if (&node != first_) return;
  launch(PrepareWeights<T>{.filters = device_filters_.as<Filter<T>>(),
                           .parts = device_parts_.as<FilterPart>(),
                           .count = static_cast<int>(parts_.size())},
         context_.cuda().stream());
}

template <class T> UsesWeights<T>::UsesWeights(const Program& program) {
  for (const std::unique_ptr<Node>& node : program.nodes()) {
    const auto* before = dynamic_cast<const UsesWeights*>(node.get());
    if (before != nullptr) weights_ = before->weights_;
  }
  if (weights_ == nullptr) weights_ = std::make_shared<GpuWeights<T>>(program.context());
}

template class GpuWeights<float>;
template class GpuWeights<Float16>;
template class GpuWeights<Bfloat16>;
template class UsesWeights<float>;
template class UsesWeights<Float16>;
template class UsesWeights<Bfloat16>;

}  // namespace rk::gpu
