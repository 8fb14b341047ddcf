#include "weights/network_tensors.h"

#include "engine/base/error.h"

#include <array>

namespace rk {
namespace {

using Kind = NetworkTensor::Kind;

class Listing {
 public:
  void convolution(const std::string& name, std::int64_t out, std::int64_t in, std::int64_t height,
                   std::int64_t width) {
    tensors.push_back({name + ".weight", {out, in, height, width}, Kind::kConvolution});
  }
  void convolution(const std::string& name, std::int64_t out, std::int64_t in, std::int64_t side) {
    convolution(name, out, in, side, side);
  }
  void normalisation(const std::string& name, std::int64_t channels) {
    tensors.push_back({name + ".weight", {channels}, Kind::kScale});
    tensors.push_back({name + ".bias", {channels}, Kind::kShift});
    tensors.push_back({name + ".running_mean", {channels}, Kind::kMean});
    tensors.push_back({name + ".running_var", {channels}, Kind::kVariance});
    tensors.push_back({name + ".num_batches_tracked", {}, Kind::kCounter});
  }
  // torchvision's BasicConv2d.
  void basic(const std::string& name, std::int64_t out, std::int64_t in, std::int64_t height,
             std::int64_t width) {
    convolution(name + ".conv", out, in, height, width);
    normalisation(name + ".bn", out);
  }
  void basic(const std::string& name, std::int64_t out, std::int64_t in, std::int64_t side) {
    basic(name, out, in, side, side);
  }

  std::vector<NetworkTensor> tensors;
};

struct ResNet {
  std::vector<int> blocks;  // of each stage
  bool bottleneck = false;
  std::int64_t channels = 64;  // of the first stage
  std::int64_t first = 7;      // side of the first kernel
};

std::vector<NetworkTensor> resnet(const ResNet& arch) {
  const bool bottleneck = arch.bottleneck;
  const std::int64_t expansion = bottleneck ? 4 : 1;
  Listing list;
  list.convolution("conv1", arch.channels, 3, arch.first);
  list.normalisation("bn1", arch.channels);
  std::int64_t in = arch.channels, width = arch.channels;
  for (std::size_t stage = 0; stage < arch.blocks.size(); ++stage, width *= 2) {
    const std::int64_t out = width * expansion;
    for (int b = 0; b < arch.blocks[stage]; ++b) {
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

std::vector<NetworkTensor> resnet20() { return resnet({{3, 3, 3}, false, 16, 3}); }
std::vector<NetworkTensor> resnet18() { return resnet({{2, 2, 2, 2}}); }
std::vector<NetworkTensor> resnet50() { return resnet({{3, 4, 6, 3}, true}); }

std::vector<NetworkTensor> googlenet() {
  Listing list;
  list.basic("conv1", 64, 3, 7);
  list.basic("conv2", 64, 64, 1);
  list.basic("conv3", 192, 64, 3);
  std::int64_t in = 192;
  // Channels: the 1x1; before and after each of the two 3x3; the pooled branch.
  const auto block = [&](const std::string& name, std::array<std::int64_t, 6> c) {
    list.basic(name + ".branch1", c[0], in, 1);
    list.basic(name + ".branch2.0", c[1], in, 1);
    list.basic(name + ".branch2.1", c[2], c[1], 3);
    list.basic(name + ".branch3.0", c[3], in, 1);
    list.basic(name + ".branch3.1", c[4], c[3], 3);
    list.basic(name + ".branch4.1", c[5], in, 1);
    in = c[0] + c[2] + c[4] + c[5];
  };
  block("inception3a", {64, 96, 128, 16, 32, 32});
  block("inception3b", {128, 128, 192, 32, 96, 64});
  block("inception4a", {192, 96, 208, 16, 48, 64});
  block("inception4b", {160, 112, 224, 24, 64, 64});
  block("inception4c", {128, 128, 256, 24, 64, 64});
  block("inception4d", {112, 144, 288, 32, 64, 64});
  block("inception4e", {256, 160, 320, 32, 128, 128});
  block("inception5a", {256, 160, 320, 32, 128, 128});
  block("inception5b", {384, 192, 384, 48, 128, 128});
  return list.tensors;
}

std::vector<NetworkTensor> inception_v3() {
  Listing list;
  list.basic("Conv2d_1a_3x3", 32, 3, 3);
  list.basic("Conv2d_2a_3x3", 32, 32, 3);
  list.basic("Conv2d_2b_3x3", 64, 32, 3);
  list.basic("Conv2d_3b_1x1", 80, 64, 1);
  list.basic("Conv2d_4a_3x3", 192, 80, 3);
  std::int64_t in = 192;
  const auto a = [&](const std::string& name, std::int64_t pooled) {
    list.basic(name + ".branch1x1", 64, in, 1);
    list.basic(name + ".branch5x5_1", 48, in, 1);
    list.basic(name + ".branch5x5_2", 64, 48, 5);
    list.basic(name + ".branch3x3dbl_1", 64, in, 1);
    list.basic(name + ".branch3x3dbl_2", 96, 64, 3);
    list.basic(name + ".branch3x3dbl_3", 96, 96, 3);
    list.basic(name + ".branch_pool", pooled, in, 1);
    in = 64 + 64 + 96 + pooled;
  };
  const auto c = [&](const std::string& name, std::int64_t inner) {
    list.basic(name + ".branch1x1", 192, in, 1);
    list.basic(name + ".branch7x7_1", inner, in, 1);
    list.basic(name + ".branch7x7_2", inner, inner, 1, 7);
    list.basic(name + ".branch7x7_3", 192, inner, 7, 1);
    list.basic(name + ".branch7x7dbl_1", inner, in, 1);
    list.basic(name + ".branch7x7dbl_2", inner, inner, 7, 1);
    list.basic(name + ".branch7x7dbl_3", inner, inner, 1, 7);
    list.basic(name + ".branch7x7dbl_4", inner, inner, 7, 1);
    list.basic(name + ".branch7x7dbl_5", 192, inner, 1, 7);
    list.basic(name + ".branch_pool", 192, in, 1);
  };
  const auto e = [&](const std::string& name) {
    list.basic(name + ".branch1x1", 320, in, 1);
    list.basic(name + ".branch3x3_1", 384, in, 1);
    list.basic(name + ".branch3x3_2a", 384, 384, 1, 3);
    list.basic(name + ".branch3x3_2b", 384, 384, 3, 1);
    list.basic(name + ".branch3x3dbl_1", 448, in, 1);
    list.basic(name + ".branch3x3dbl_2", 384, 448, 3);
    list.basic(name + ".branch3x3dbl_3a", 384, 384, 1, 3);
    list.basic(name + ".branch3x3dbl_3b", 384, 384, 3, 1);
    list.basic(name + ".branch_pool", 192, in, 1);
    in = 2048;
  };
  a("Mixed_5b", 32);
  a("Mixed_5c", 64);
  a("Mixed_5d", 64);
  list.basic("Mixed_6a.branch3x3", 384, in, 3);
  list.basic("Mixed_6a.branch3x3dbl_1", 64, in, 1);
  list.basic("Mixed_6a.branch3x3dbl_2", 96, 64, 3);
  list.basic("Mixed_6a.branch3x3dbl_3", 96, 96, 3);
  in = 768;
  c("Mixed_6b", 128);
  c("Mixed_6c", 160);
  c("Mixed_6d", 160);
  c("Mixed_6e", 192);
  list.basic("Mixed_7a.branch3x3_1", 192, in, 1);
  list.basic("Mixed_7a.branch3x3_2", 320, 192, 3);
  list.basic("Mixed_7a.branch7x7x3_1", 192, in, 1);
  list.basic("Mixed_7a.branch7x7x3_2", 192, 192, 1, 7);
  list.basic("Mixed_7a.branch7x7x3_3", 192, 192, 7, 1);
  list.basic("Mixed_7a.branch7x7x3_4", 192, 192, 3);
  in = 1280;
  e("Mixed_7b");
  e("Mixed_7c");
  return list.tensors;
}

struct Known {
  const char* arch;
  std::int64_t features;
  std::vector<NetworkTensor> (*tensors)();
};
constexpr std::array<Known, 5> kKnown = {{{"resnet20", 64, resnet20},
                                          {"resnet18", 512, resnet18},
                                          {"resnet50", 2048, resnet50},
                                          {"googlenet", 1024, googlenet},
                                          {"inception_v3", 2048, inception_v3}}};

const Known* find_known(const std::string& arch) {
  for (const Known& k : kKnown) {
    if (arch == k.arch) return &k;
  }
  return nullptr;
}

const Known& known(const std::string& arch) {
  if (const Known* found = find_known(arch)) return *found;
  fail<UsageError>("unknown network '{}'; {} are built", arch, known_networks());
}

}  // namespace

std::string known_networks() {
  std::string names;
  for (std::size_t i = 0; i < kKnown.size(); ++i) {
    names += i == 0 ? "" : i + 1 < kKnown.size() ? ", " : " and ";
    names += kKnown[i].arch;
  }
  return names;
}

bool is_known_network(const std::string& arch) { return find_known(arch) != nullptr; }

std::int64_t network_features(const std::string& arch) { return known(arch).features; }

std::vector<NetworkTensor> network_tensors(const std::string& arch) {
  return known(arch).tensors();
}

}  // namespace rk
