#include "layers/networks/googlenet.h"

#include "layers/concat.h"
#include "layers/networks/basic_conv2d.h"

namespace rk {
namespace {

constexpr Kernel k3x3{{3, 3}, {1, 1}};

// Channels of the 1x1 branch, of the two 3x3 branches before and after their 3x3, of the pooling
// branch.
struct Inception {
  const char* name;
  std::int64_t one, three_before, three, five_before, five, pooled;
};

TensorId inception(const BasicConv2d& units, TensorId x, const Inception& block) {
  const std::string name = std::string(block.name) + ".";
  Program& program = units.program();
  const TensorId one = units(x, name + "branch1", block.one);
  TensorId three = units(x, name + "branch2.0", block.three_before);
  three = units(three, name + "branch2.1", block.three, k3x3);
  TensorId five = units(x, name + "branch3.0", block.five_before);
  five = units(five, name + "branch3.1", block.five, k3x3);
  TensorId pooled =
      max_pool(program, x, name + "branch4.0", {{3, 3}, {1, 1}, {1, 1}, /*ceil_mode=*/true});
  pooled = units(pooled, name + "branch4.1", block.pooled);
  return concat(program, {one, three, five, pooled}, block.name);
}

}  // namespace

TensorId googlenet(Program& program, const NetworkSpec& spec, TensorId images) {
  const BasicConv2d units(program, spec);
  const auto halve = [&](TensorId x, const char* name, std::int64_t side) {
    return max_pool(program, x, name, {{side, side}, {2, 2}, {0, 0}, /*ceil_mode=*/true});
  };
  TensorId x = units.first(images, "conv1", 64, {{7, 7}, {3, 3}, 2});
  x = halve(x, "maxpool1", 3);
  x = units(x, "conv2", 64);
  x = units(x, "conv3", 192, k3x3);
  x = halve(x, "maxpool2", 3);
  x = inception(units, x, {"inception3a", 64, 96, 128, 16, 32, 32});
  x = inception(units, x, {"inception3b", 128, 128, 192, 32, 96, 64});
  x = halve(x, "maxpool3", 3);
  x = inception(units, x, {"inception4a", 192, 96, 208, 16, 48, 64});
  x = inception(units, x, {"inception4b", 160, 112, 224, 24, 64, 64});
  x = inception(units, x, {"inception4c", 128, 128, 256, 24, 64, 64});
  x = inception(units, x, {"inception4d", 112, 144, 288, 32, 64, 64});
  x = inception(units, x, {"inception4e", 256, 160, 320, 32, 128, 128});
  x = halve(x, "maxpool4", 2);
  x = inception(units, x, {"inception5a", 256, 160, 320, 32, 128, 128});
  return inception(units, x, {"inception5b", 384, 192, 384, 48, 128, 128});
}

}  // namespace rk
