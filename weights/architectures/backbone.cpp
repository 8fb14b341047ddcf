#include "weights/architectures/backbone.h"

#include "engine/base/colours.h"

#include <utility>

namespace rk {

LayerId Backbone::add(Layer layer) {
  layers_.push_back(std::move(layer));
  return static_cast<LayerId>(layers_.size()) - 1;
}

std::int64_t Backbone::channels(LayerId layer) const {
  if (layer == kImages) return kColours;
  const Layer& found = layers_[static_cast<std::size_t>(layer)];
  if (const auto* unit = std::get_if<ConvBn>(&found)) return unit->channels;
  if (const auto* pooling = std::get_if<Pooling>(&found)) return channels(pooling->x);
  std::int64_t sum = 0;
  for (const LayerId input : std::get<Concatenation>(found).inputs) sum += channels(input);
  return sum;
}

const ConvBn* Backbone::shortcut_of(const ConvBn& unit) const {
  if (!unit.residual) return nullptr;
  const auto* added = std::get_if<ConvBn>(&layers_[static_cast<std::size_t>(*unit.residual)]);
  return added != nullptr && !added->relu ? added : nullptr;
}

}  // namespace rk
