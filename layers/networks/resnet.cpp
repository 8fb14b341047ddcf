#include "layers/networks/resnet.h"

#include "engine/device/precision.h"
#include "layers/networks/conv_bn_unit.h"

#include <vector>

namespace rk {
namespace {

struct Architecture {
  std::vector<int> blocks;  // of each stage
  bool bottleneck;
  bool small_images;  // no stride or pooling before the stages, a quarter of the channels
};

class ResNetBuilder {
 public:
  ResNetBuilder(Program& program, const NetworkSpec& spec) : program_(program), spec_(spec) {}

  TensorId backbone(TensorId x, const Architecture& arch) {
    std::int64_t channels = arch.small_images ? 16 : 64;
    Conv2dOptions first = arch.small_images ? square(channels, 3, 1, 1) : square(channels, 7, 2, 3);
    first.in_channels = kColours;
    x = make(x, {"conv1", "bn1", "relu"}, first, true, -1);
    if (!arch.small_images) x = max_pool(program_, x, "maxpool", {});
    int stage = 0;
    for (const int blocks : arch.blocks) {
      ++stage;
      for (int b = 0; b < blocks; ++b) {
        const std::int64_t stride = stage > 1 && b == 0 ? 2 : 1;
        const std::string name = fmt::format("layer{}.{}", stage, b);
        x = arch.bottleneck ? bottleneck(x, name, channels, stride)
                            : basic(x, name, channels, stride);
      }
      channels *= 2;
    }
    return x;
  }

 private:
  static Conv2dOptions square(std::int64_t out, std::int64_t kernel, std::int64_t stride,
                              std::int64_t padding) {
    return {out, {kernel, kernel}, {stride, stride}, {padding, padding}};
  }

  TensorId make(TensorId x, const ConvBnNames& names, const Conv2dOptions& convolution,
                bool activate, TensorId residual) {
    return conv_bn_unit(program_, spec_, x, names, convolution,
                        {.relu = activate, .residual = residual});
  }

  // The tensor added to a block's last normalisation.
  struct Shortcut {
    TensorId tensor;
    std::string batchnorm;  // still to be applied to the tensor; empty: none
  };

  // The shortcut: the input itself, or a strided 1x1 convolution if shape or channels change.
  // Appended after the block's first convolution of the same input, so that in backward it comes
  // first: the addition to the input's gradient, and ReLU's mask, then fall to the first
  // convolution, which in bottlenecks has no stride and so fuses both.
  Shortcut shortcut(TensorId x, const std::string& block, std::int64_t out, std::int64_t stride) {
    if (stride == 1 && program_.shape(x)[3] == out) return {x, ""};
    const std::string convolution = block + ".downsample.0", batchnorm = block + ".downsample.1";
    const Conv2dOptions options = square(out, 1, stride, 0);
    if (spec_.fuse && joins_batchnorms(program_, spec_.batchnorm)) {
      const TensorId y = conv2d(program_, x, convolution, options);
      declare_batchnorm(program_, batchnorm, out);  // keeps parameters in the order of their layers
      return {y, batchnorm};
    }
    return {make(x, {convolution, batchnorm, ""}, options, false, -1), ""};
  }

  // A block's last convolution and all that follows it in the block.
  TensorId last(TensorId x, const ConvBnNames& names, const Conv2dOptions& convolution,
                const Shortcut& shortcut) {
    if (shortcut.batchnorm.empty()) {
      return make(x, names, convolution, true, shortcut.tensor);
    }
    const TensorId y = conv2d(program_, x, names.convolution, convolution);
    return joined_batchnorm(program_, y, names.batchnorm, shortcut.tensor, shortcut.batchnorm,
                            {.mode = spec_.batchnorm}, names.output);
  }

  TensorId basic(TensorId x, const std::string& block, std::int64_t channels, std::int64_t stride) {
    TensorId y = make(x, {block + ".conv1", block + ".bn1", block + ".relu1"},
                      square(channels, 3, stride, 1), true, -1);
    const Shortcut skip = shortcut(x, block, channels, stride);
    return last(y, {block + ".conv2", block + ".bn2", block}, square(channels, 3, 1, 1), skip);
  }

  TensorId bottleneck(TensorId x, const std::string& block, std::int64_t channels,
                      std::int64_t stride) {
    const std::int64_t out = 4 * channels;
    const std::int64_t first = spec_.stride_in_1x1 ? stride : 1;
    TensorId y = make(x, {block + ".conv1", block + ".bn1", block + ".relu1"},
                      square(channels, 1, first, 0), true, -1);
    const Shortcut skip = shortcut(x, block, out, stride);
    y = make(y, {block + ".conv2", block + ".bn2", block + ".relu2"},
             square(channels, 3, stride / first, 1), true, -1);
    return last(y, {block + ".conv3", block + ".bn3", block}, square(out, 1, 1, 0), skip);
  }

  Program& program_;
  const NetworkSpec& spec_;
};

}  // namespace

TensorId resnet20(Program& program, const NetworkSpec& spec, TensorId images) {
  return ResNetBuilder(program, spec).backbone(images, {{3, 3, 3}, false, true});
}

TensorId resnet18(Program& program, const NetworkSpec& spec, TensorId images) {
  return ResNetBuilder(program, spec).backbone(images, {{2, 2, 2, 2}, false, false});
}

TensorId resnet50(Program& program, const NetworkSpec& spec, TensorId images) {
  return ResNetBuilder(program, spec).backbone(images, {{3, 4, 6, 3}, true, false});
}

}  // namespace rk
