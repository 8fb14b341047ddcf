// A network from the images to the features before global pooling, as a list of layers: what they
// are, not how they are computed. layers/networks records the list as a program,
// network_tensors.h lists its tensors, weights/onnx writes it as a graph.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace rk {

using LayerId = int;  // place in the list
inline constexpr LayerId kImages = -1;

// The pixels that one pixel of the result is made of.
struct Window {
  std::array<std::int64_t, 2> size{1, 1};     // height, width
  std::array<std::int64_t, 2> padding{0, 0};  // above and below, left and right
  std::int64_t stride = 1;
  bool ceil_mode = false;  // of poolings: rounds the result's size up

  // The size of the result along an axis (0: height); 0 where the window does not fit.
  std::int64_t result(std::int64_t pixels, std::size_t axis) const;
};

// A convolution without bias, its batch normalisation, an addition, ReLU. Its parameters are named
// <convolution>.weight, <batchnorm>.weight and so on.
struct ConvBn {
  std::string name;  // of the result
  std::string convolution, batchnorm;
  LayerId x = kImages;
  std::int64_t channels = 0;  // of the result
  Window window;
  double epsilon = 1e-5;
  std::optional<LayerId> residual = std::nullopt;  // added before ReLU
  // False only for a shortcut: a unit whose result is one other unit's residual and nothing else.
  bool relu = true;
};

// Padding is minus infinity in a maximum and counts as zeros in an average.
struct Pooling {
  enum class Kind : std::uint8_t { kMaximum, kAverage };

  std::string name;
  LayerId x = kImages;
  Kind kind = Kind::kMaximum;
  Window window;
};

// Along the channels.
struct Concatenation {
  std::string name;
  std::vector<LayerId> inputs;
};

using Layer = std::variant<ConvBn, Pooling, Concatenation>;

class Backbone {
 public:
  // Appends a layer of those before it, and returns its place.
  LayerId add(Layer layer);
  // In the order in which they are computed. The last one's result is the backbone's.
  const std::vector<Layer>& layers() const { return layers_; }
  std::int64_t channels(LayerId layer) const;
  // The side of the smallest square images in which every layer's window fits.
  std::int64_t least_image_size() const;
  // The shortcut that the unit adds; null if it adds none, or another layer's result.
  const ConvBn* shortcut_of(const ConvBn& unit) const;

 private:
  bool fits(std::int64_t image_size) const;

  std::vector<Layer> layers_;
};

}  // namespace rk
