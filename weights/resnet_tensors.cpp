#include "weights/resnet_tensors.h"

#include "engine/base/error.h"

#include <array>

namespace rk {
namespace {

using Kind = ResNetTensor::Kind;

class Listing {
 public:
  void convolution(const std::string& name, std::int64_t out, std::int64_t in, std::int64_t side) {
    tensors.push_back({name + ".weight", {out, in, side, side}, Kind::kConvolution});
  }
  void normalisation(const std::string& name, std::int64_t channels) {
    tensors.push_back({name + ".weight", {channels}, Kind::kScale});
    tensors.push_back({name + ".bias", {channels}, Kind::kShift});
    tensors.push_back({name + ".running_mean", {channels}, Kind::kMean});
    tensors.push_back({name + ".running_var", {channels}, Kind::kVariance});
    tensors.push_back({name + ".num_batches_tracked", {}, Kind::kCounter});
  }

  std::vector<ResNetTensor> tensors;
};

}  // namespace

std::int64_t resnet_features(const std::string& arch) { return arch == "resnet50" ? 2048 : 512; }

std::vector<ResNetTensor> resnet_tensors(const std::string& arch) {
  const bool bottleneck = arch == "resnet50";
  expect(bottleneck || arch == "resnet18", "[resnet_tensors] expected resnet18 or resnet50, got {}",
         arch);
  const std::array<int, 4> blocks = bottleneck ? std::array{3, 4, 6, 3} : std::array{2, 2, 2, 2};
  const std::int64_t expansion = bottleneck ? 4 : 1;
  Listing list;
  list.convolution("conv1", 64, 3, 7);
  list.normalisation("bn1", 64);
  std::int64_t in = 64;
  for (int stage = 0; stage < 4; ++stage) {
    const std::int64_t width = std::int64_t{64} << stage;
    const std::int64_t out = width * expansion;
    for (int b = 0; b < blocks[static_cast<std::size_t>(stage)]; ++b) {
      const std::string block = fmt::format("layer{}.{}.", stage + 1, b);
      const auto layer = [&](int number, std::int64_t to, std::int64_t from, std::int64_t side) {
        list.convolution(fmt::format("{}conv{}", block, number), to, from, side);
        list.normalisation(fmt::format("{}bn{}", block, number), to);
      };
      if (bottleneck) {
        layer(1, width, in, 1);
        layer(2, width, width, 3);
        layer(3, out, width, 1);
      } else {
        layer(1, width, in, 3);
        layer(2, width, width, 3);
      }
      if (b == 0 && (stage > 0 || in != out)) {
        list.convolution(block + "downsample.0", out, in, 1);
        list.normalisation(block + "downsample.1", out);
      }
      in = out;
    }
  }
  return list.tensors;
}

}  // namespace rk
