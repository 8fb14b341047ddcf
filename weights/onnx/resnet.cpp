#include "weights/onnx/networks.h"

#include <fmt/format.h>

namespace rk {
namespace {

constexpr double kEpsilon = 1e-5;  // as in layers/batchnorm.h

std::string block(OnnxGraph& graph, const std::string& x, const std::string& name,
                  std::int64_t stride) {
  const bool bottleneck = graph.has(name + ".conv3.weight");
  const int last = bottleneck ? 3 : 2;
  // The convolution with the stride: the first of a basic block; the 3x3 or the first 1x1 of a
  // bottleneck.
  const int strided = bottleneck && !graph.model().stride_in_1x1 ? 2 : 1;
  std::string y = x;
  for (int i = 1; i <= last; ++i) {
    y = graph.convolution(y, fmt::format("{}.conv{}", name, i), {i == strided ? stride : 1});
    y = graph.normalisation(y, fmt::format("{}.bn{}", name, i), kEpsilon);
    if (i < last) y = graph.relu(y, fmt::format("{}.relu{}", name, i));
  }
  std::string skip = x;
  if (graph.has(name + ".downsample.0.weight")) {
    skip = graph.convolution(x, name + ".downsample.0", {stride});
    skip = graph.normalisation(skip, name + ".downsample.1", kEpsilon);
  }
  return graph.relu(graph.add(y, skip, name + ".add"), name);
}

}  // namespace

std::string onnx_resnet(OnnxGraph& graph, const std::string& images) {
  const bool small_images = graph.model().arch == "resnet20";
  std::string x = graph.convolution(images, "conv1", {small_images ? 1 : 2});
  x = graph.relu(graph.normalisation(x, "bn1", kEpsilon), "relu");
  if (!small_images) x = graph.max_pool(x, "maxpool", {.padding = 1});
  for (int stage = 1; stage <= 4; ++stage) {
    for (int b = 0;; ++b) {
      const std::string name = fmt::format("layer{}.{}", stage, b);
      if (!graph.has(name + ".conv1.weight")) break;
      x = block(graph, x, name, stage > 1 && b == 0 ? 2 : 1);
    }
  }
  return x;
}

}  // namespace rk
