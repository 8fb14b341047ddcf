#include "layers/networks/resnet.h"

#include "engine/base/error.h"
#include "engine/base/nearest.h"
#include "engine/tape/layout.h"
#include "layers/activation.h"
#include "layers/conv_bn.h"
#include "layers/graphs/graph.h"
#include "layers/l2norm.h"
#include "layers/linear.h"

#include <algorithm>
#include <array>

namespace rk {
namespace {

struct Architecture {
  std::string name;
  std::array<int, 4> blocks;
  bool bottleneck;
};

const std::array<Architecture, 2> kArchitectures = {{
    {"resnet18", {2, 2, 2, 2}, false},
    {"resnet50", {3, 4, 6, 3}, true},
}};

const Architecture& find_architecture(const std::string& name) {
  for (const Architecture& a : kArchitectures) {
    if (a.name == name) return a;
  }
  fail<UsageError>("unknown network '{}'; {}", name, suggestion(name, network_names()));
}

constexpr std::int64_t kColours = 3;

class ResNetBuilder {
 public:
  ResNetBuilder(Program& program, const NetworkSpec& spec) : program_(program), spec_(spec) {}

  TensorId backbone(TensorId x) {
    const Architecture& arch = find_architecture(spec_.arch);
    Conv2dOptions first = square(64, 7, 2, 3);
    first.in_channels = kColours;
    x = unit(x, {"conv1", "bn1", "relu"}, first, true, -1);
    x = max_pool(program_, x, "maxpool", {});
    std::int64_t channels = 64;
    for (int stage = 0; stage < 4; ++stage) {
      for (int b = 0; b < arch.blocks[static_cast<std::size_t>(stage)]; ++b) {
        const std::int64_t stride = stage > 0 && b == 0 ? 2 : 1;
        const std::string name = fmt::format("layer{}.{}", stage + 1, b);
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

  // Convolution, normalisation, then the residual and ReLU if asked for.
  TensorId unit(TensorId x, const ConvBnNames& names, const Conv2dOptions& convolution,
                bool activate, TensorId residual) {
    BatchNormOptions options{.mode = spec_.batchnorm};
    if (spec_.fuse) {
      options.relu = activate;
      options.residual = residual;
      return conv_bn(program_, x, names, convolution, options);
    }
    TensorId y = batchnorm(program_, conv2d(program_, x, names.convolution, convolution),
                           names.batchnorm, options);
    if (residual >= 0) y = add(program_, y, residual, names.batchnorm + ".add");
    if (activate) y = relu(program_, y, names.output);
    return y;
  }

  // The shortcut: the input itself, or a strided 1x1 where shape or channels change. Appended
  // behind the first convolution of the same input, so that backward it comes first: what is added
  // to its gradient, and ReLU's mask, then go with that convolution, which in bottlenecks has no
  // stride and so has both fused.
  TensorId shortcut(TensorId x, const std::string& block, std::int64_t out, std::int64_t stride) {
    if (stride == 1 && program_.shape(x)[3] == out) return x;
    return unit(x, {block + ".downsample.0", block + ".downsample.1", ""},
                square(out, 1, stride, 0), false, -1);
  }

  TensorId basic(TensorId x, const std::string& block, std::int64_t channels, std::int64_t stride) {
    TensorId y = unit(x, {block + ".conv1", block + ".bn1", block + ".relu1"},
                      square(channels, 3, stride, 1), true, -1);
    const TensorId skip = shortcut(x, block, channels, stride);
    return unit(y, {block + ".conv2", block + ".bn2", block}, square(channels, 3, 1, 1), true,
                skip);
  }

  TensorId bottleneck(TensorId x, const std::string& block, std::int64_t channels,
                      std::int64_t stride) {
    const std::int64_t out = 4 * channels;
    const std::int64_t first = spec_.stride_in_1x1 ? stride : 1;
    TensorId y = unit(x, {block + ".conv1", block + ".bn1", block + ".relu1"},
                      square(channels, 1, first, 0), true, -1);
    const TensorId skip = shortcut(x, block, out, stride);
    y = unit(y, {block + ".conv2", block + ".bn2", block + ".relu2"},
             square(channels, 3, stride / first, 1), true, -1);
    return unit(y, {block + ".conv3", block + ".bn3", block}, square(out, 1, 1, 0), true, skip);
  }

  Program& program_;
  const NetworkSpec& spec_;
};

}  // namespace

const std::vector<std::string>& network_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    out.reserve(kArchitectures.size());
    for (const Architecture& a : kArchitectures) out.push_back(a.name);
    return out;
  }();
  return names;
}

TensorId network_input(Program& program, std::int64_t batch, std::int64_t height,
                       std::int64_t width) {
  if (program.on_gpu()) {
    const Precision precision = program.options().precision;
    const std::int64_t channels = image_channels(precision);
    return program.input("input", {batch, height, width, channels}, channels,
                         image_type(precision));
  }
  // Planes of pixels are what the direct convolutions want of a first layer with three channels.
  const std::int64_t planes = convolution_width() > 0 ? 1 : kColours;
  return program.input("input", {batch, height, width, kColours}, planes);
}

Network build_network(Program& program, const NetworkSpec& spec, std::int64_t batch,
                      std::int64_t height, std::int64_t width) {
  Network network{};
  network.input = network_input(program, batch, height, width);
  const TensorId x = ResNetBuilder(program, spec).backbone(network.input);
  network.features = global_pool(program, x, "features", spec.pool);
  const TensorId projected = spec.dim == 0 ? network.features
                                           : linear(program, network.features, "embedding",
                                                    {.out_features = spec.dim,
                                                     .orthogonal = spec.orthogonal_embedding,
                                                     .group = ParameterGroup::kEmbedding});
  network.embeddings = l2norm(program, projected, "embeddings");
  program.set_output(network.embeddings);
  return network;
}

}  // namespace rk
