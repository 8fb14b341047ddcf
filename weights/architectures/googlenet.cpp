#include "weights/architectures/googlenet.h"

#include "weights/architectures/basic_conv2d.h"

namespace rk {
namespace {

// Channels of the 1x1 branch, of the two 3x3 branches before and after their 3x3, of the pooling
// branch.
struct Inception {
  const char* name;
  std::int64_t one, three_before, three, five_before, five, pooled;
};

LayerId inception(Backbone& net, LayerId x, const Inception& block) {
  const std::string name = std::string(block.name) + ".";
  const LayerId one = basic_conv2d(net, x, name + "branch1", block.one);
  LayerId three = basic_conv2d(net, x, name + "branch2.0", block.three_before);
  three = basic_conv2d(net, three, name + "branch2.1", block.three, k3x3);
  LayerId five = basic_conv2d(net, x, name + "branch3.0", block.five_before);
  five = basic_conv2d(net, five, name + "branch3.1", block.five, k3x3);
  LayerId pooled = net.add(Pooling{.name = name + "branch4.0", .x = x, .window = k3x3});
  pooled = basic_conv2d(net, pooled, name + "branch4.1", block.pooled);
  return net.add(Concatenation{block.name, {one, three, five, pooled}});
}

}  // namespace

Backbone googlenet() {
  Backbone net;
  const auto halve = [&](LayerId x, const char* name, std::int64_t side) {
    return net.add(Pooling{
        .name = name, .x = x, .window = {.size = {side, side}, .stride = 2, .ceil_mode = true}});
  };
  LayerId x = basic_conv2d(net, kImages, "conv1", 64, {{7, 7}, {3, 3}, 2});
  x = halve(x, "maxpool1", 3);
  x = basic_conv2d(net, x, "conv2", 64);
  x = basic_conv2d(net, x, "conv3", 192, k3x3);
  x = halve(x, "maxpool2", 3);
  x = inception(net, x, {"inception3a", 64, 96, 128, 16, 32, 32});
  x = inception(net, x, {"inception3b", 128, 128, 192, 32, 96, 64});
  x = halve(x, "maxpool3", 3);
  x = inception(net, x, {"inception4a", 192, 96, 208, 16, 48, 64});
  x = inception(net, x, {"inception4b", 160, 112, 224, 24, 64, 64});
  x = inception(net, x, {"inception4c", 128, 128, 256, 24, 64, 64});
  x = inception(net, x, {"inception4d", 112, 144, 288, 32, 64, 64});
  x = inception(net, x, {"inception4e", 256, 160, 320, 32, 128, 128});
  x = halve(x, "maxpool4", 2);
  x = inception(net, x, {"inception5a", 256, 160, 320, 32, 128, 128});
  inception(net, x, {"inception5b", 384, 192, 384, 48, 128, 128});
  return net;
}

}  // namespace rk
