#include "weights/architectures/resnet.h"

#include <fmt/format.h>

namespace rk {
namespace {

struct Form {
  std::vector<int> blocks;  // of each stage
  bool bottleneck = false;
  bool small_images = false;   // no stride or pooling before the stages, a quarter of the channels
  bool stride_in_1x1 = false;  // of bottlenecks
};

// Padded so that stride 1 keeps the size.
Window square(std::int64_t side, std::int64_t stride = 1) {
  return {.size = {side, side}, .padding = {side / 2, side / 2}, .stride = stride};
}

// Of a block's convolutions.
std::vector<Window> windows_of(const Form& form, std::int64_t stride) {
  if (!form.bottleneck) return {square(3, stride), square(3)};
  if (form.stride_in_1x1) return {square(1, stride), square(3), square(1)};
  return {square(1), square(3, stride), square(1)};
}

// The block's input itself, or a strided 1x1 convolution of it if shape or channels change.
LayerId shortcut(Backbone& net, LayerId x, const std::string& block, std::int64_t channels,
                 std::int64_t stride) {
  if (stride == 1 && net.channels(x) == channels) return x;
  return net.add(ConvBn{.name = block + ".downsample.1",
                        .convolution = block + ".downsample.0",
                        .batchnorm = block + ".downsample.1",
                        .x = x,
                        .channels = channels,
                        .window = square(1, stride),
                        .relu = false});
}

LayerId add_block(Backbone& net, const Form& form, LayerId x, const std::string& name,
                  std::int64_t channels, std::int64_t stride) {
  const std::int64_t out = form.bottleneck ? 4 * channels : channels;
  const std::vector<Window> windows = windows_of(form, stride);
  LayerId y = x, added = x;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const bool last = i + 1 == windows.size();
    ConvBn unit{.name = last ? name : fmt::format("{}.relu{}", name, i + 1),
                .convolution = fmt::format("{}.conv{}", name, i + 1),
                .batchnorm = fmt::format("{}.bn{}", name, i + 1),
                .x = y,
                .channels = last ? out : channels,
                .window = windows[i]};
    if (last) unit.residual = added;
    y = net.add(unit);
    // After the block's first convolution of the same input, so that in backward it comes first:
    // the addition to the input's gradient, and ReLU's mask, then fall to the first convolution,
    // which in bottlenecks has no stride and so fuses both.
    if (i == 0) added = shortcut(net, x, name, out, stride);
  }
  return y;
}

Backbone resnet(const Form& form) {
  Backbone net;
  std::int64_t channels = form.small_images ? 16 : 64;
  LayerId x = net.add(ConvBn{.name = "relu",
                             .convolution = "conv1",
                             .batchnorm = "bn1",
                             .channels = channels,
                             .window = form.small_images ? square(3) : square(7, 2)});
  if (!form.small_images) {
    x = net.add(Pooling{.name = "maxpool", .x = x, .window = square(3, 2)});
  }
  for (std::size_t stage = 0; stage < form.blocks.size(); ++stage, channels *= 2) {
    for (int b = 0; b < form.blocks[stage]; ++b) {
      x = add_block(net, form, x, fmt::format("layer{}.{}", stage + 1, b), channels,
                    stage > 0 && b == 0 ? 2 : 1);
    }
  }
  return net;
}

}  // namespace

Backbone resnet20() { return resnet({.blocks = {3, 3, 3}, .small_images = true}); }

Backbone resnet18() { return resnet({.blocks = {2, 2, 2, 2}}); }

Backbone resnet50(bool stride_in_1x1) {
  return resnet({.blocks = {3, 4, 6, 3}, .bottleneck = true, .stride_in_1x1 = stride_in_1x1});
}

}  // namespace rk
