#include "weights/architectures/backbone.h"

#include "engine/base/colours.h"
#include "engine/base/integers.h"

#include <utility>

namespace rk {

std::int64_t Window::result(std::int64_t pixels, std::size_t axis) const {
  const std::int64_t padded = pixels + 2 * padding[axis];
  if (pixels == 0 || padded < size[axis]) return 0;
  const std::int64_t steps = (padded - size[axis] + (ceil_mode ? stride - 1 : 0)) / stride;
  // A window must not begin in the padding behind the pixels.
  return steps * stride >= pixels + padding[axis] ? steps : steps + 1;
}

LayerId Backbone::add(Layer layer) {
  layers_.push_back(std::move(layer));
  return static_cast<LayerId>(layers_.size()) - 1;
}

std::int64_t Backbone::channels(LayerId layer) const {
  if (layer == kImages) return kColours;
  const Layer& found = layers_[at(layer)];
  if (const auto* unit = std::get_if<ConvBn>(&found)) return unit->channels;
  if (const auto* pooling = std::get_if<Pooling>(&found)) return channels(pooling->x);
  std::int64_t sum = 0;
  for (const LayerId input : std::get<Concatenation>(found).inputs) sum += channels(input);
  return sum;
}

std::int64_t Backbone::least_image_size() const {
  std::int64_t size = 1;
  while (!fits(size)) ++size;
  return size;
}

bool Backbone::fits(std::int64_t image_size) const {
  using Sides = std::array<std::int64_t, 2>;
  std::vector<Sides> results;
  const auto result = [&](LayerId layer) {
    return layer == kImages ? Sides{image_size, image_size} : results[at(layer)];
  };
  const auto through = [&](const Window& window, LayerId x) {
    return Sides{window.result(result(x)[0], 0), window.result(result(x)[1], 1)};
  };
  for (const Layer& layer : layers_) {
    if (const auto* unit = std::get_if<ConvBn>(&layer)) {
      results.push_back(through(unit->window, unit->x));
    } else if (const auto* pooling = std::get_if<Pooling>(&layer)) {
      results.push_back(through(pooling->window, pooling->x));
    } else {
      results.push_back(result(std::get<Concatenation>(layer).inputs.front()));
    }
    if (results.back()[0] == 0 || results.back()[1] == 0) return false;
  }
  return true;
}

const ConvBn* Backbone::shortcut_of(const ConvBn& unit) const {
  if (!unit.residual) return nullptr;
  const auto* added = std::get_if<ConvBn>(&layers_[at(*unit.residual)]);
  return added != nullptr && !added->relu ? added : nullptr;
}

}  // namespace rk
