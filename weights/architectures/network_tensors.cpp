#include "weights/architectures/network_tensors.h"

#include "weights/architectures/registry.h"

namespace rk {
namespace {

void append(std::vector<NetworkTensor>& tensors, const Backbone& net, const ConvBn& unit) {
  using Kind = NetworkTensor::Kind;
  const auto [height, width] = unit.window.size;
  tensors.push_back({unit.convolution + ".weight",
                     {unit.channels, net.channels(unit.x), height, width},
                     Kind::kConvolution});
  tensors.push_back({unit.batchnorm + ".weight", {unit.channels}, Kind::kScale});
  tensors.push_back({unit.batchnorm + ".bias", {unit.channels}, Kind::kShift});
  tensors.push_back({unit.batchnorm + ".running_mean", {unit.channels}, Kind::kMean});
  tensors.push_back({unit.batchnorm + ".running_var", {unit.channels}, Kind::kVariance});
  tensors.push_back({unit.batchnorm + ".num_batches_tracked", {}, Kind::kCounter});
}

}  // namespace

std::vector<NetworkTensor> network_tensors(const std::string& arch) {
  const Backbone net = backbone(arch);
  std::vector<NetworkTensor> tensors;
  for (const Layer& layer : net.layers()) {
    const auto* unit = std::get_if<ConvBn>(&layer);
    if (unit == nullptr || !unit->relu) continue;
    append(tensors, net, *unit);
    // torchvision's blocks list their shortcut last.
    if (const ConvBn* shortcut = net.shortcut_of(*unit)) append(tensors, net, *shortcut);
  }
  return tensors;
}

}  // namespace rk
