#include "layers/gpu/weights.h"

#include "engine/device/carver.h"
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

template <class T> void place(Filter<T>& filter, Carver& pieces) {
  filter.prepared = pieces.take<T>(filter.shape.stored());
  if (filter.gamma == nullptr) return;
  filter.bias = pieces.take<T>(filter.shape.outputs);
  filter.scale = pieces.take<float>(filter.shape.outputs);
  filter.inv_std = pieces.take<float>(filter.shape.outputs);
}

}  // namespace

template <class T> CastWeights<T>& CastWeights<T>::of(Program& program) {
  if (program.prologue() == nullptr) {
    program.before_forward(std::make_unique<CastWeights>(program.context()));
  }
  return dynamic_cast<CastWeights&>(*program.prologue());
}

template <class T> int CastWeights<T>::add(const Filter<T>& filter) {
  const auto number = static_cast<int>(filters_.size());
  FilterPart::for_each(number, filter.shape,
                       [&](const FilterPart& part) { parts_.push_back(part); });
  filters_.push_back(filter);
  return number;
}

template <class T> std::size_t CastWeights<T>::plan() {
  Carver pieces;
  for (Filter<T>& filter : filters_) place(filter, pieces);
  return pieces.used();
}

template <class T> void CastWeights<T>::bind(void* memory) {
  Carver pieces(memory);
  for (Filter<T>& filter : filters_) place(filter, pieces);
  device_filters_ = copy_of(context_, filters_);
  device_parts_ = copy_of(context_, parts_);
}

template <class T> void CastWeights<T>::forward() {
  launch(PrepareWeights<T>{.filters = device_filters_.as<Filter<T>>(),
                           .parts = device_parts_.as<FilterPart>(),
                           .count = static_cast<int>(parts_.size())},
         context_.cuda().stream());
}

template class CastWeights<float>;
template class CastWeights<Float16>;
template class CastWeights<Bfloat16>;

}  // namespace rk::gpu
