#include "layers/networks/inception.h"

#include "layers/concat.h"
#include "layers/networks/basic_conv2d.h"

namespace rk {
namespace {

constexpr Kernel k3x3{{3, 3}, {1, 1}};
constexpr Kernel kHalving{{3, 3}, {0, 0}, 2};
constexpr Kernel k1x3{{1, 3}, {0, 1}};
constexpr Kernel k3x1{{3, 1}, {1, 0}};
constexpr Kernel k1x7{{1, 7}, {0, 3}};
constexpr Kernel k7x1{{7, 1}, {3, 0}};

// The blocks, by torchvision's letters. x is a block's input; `name` is the block's name and the
// prefix of its units' names.
class Blocks {
 public:
  Blocks(const BasicConv2d& units, TensorId x, const std::string& name)
      : units_(units), x_(x), name_(name) {}

  // 35 x 35 at 299 pixels: 1x1, 5x5, two 3x3, pooled.
  TensorId a(std::int64_t pooled_channels) const {
    const TensorId one = make(x_, "branch1x1", 64);
    TensorId five = make(x_, "branch5x5_1", 48);
    five = make(five, "branch5x5_2", 64, {{5, 5}, {2, 2}});
    TensorId three = make(x_, "branch3x3dbl_1", 64);
    three = make(three, "branch3x3dbl_2", 96, k3x3);
    three = make(three, "branch3x3dbl_3", 96, k3x3);
    return joined({one, five, three, pooled(pooled_channels)});
  }

  // To 17 x 17.
  TensorId b() const {
    const TensorId three = make(x_, "branch3x3", 384, kHalving);
    TensorId twice = make(x_, "branch3x3dbl_1", 64);
    twice = make(twice, "branch3x3dbl_2", 96, k3x3);
    twice = make(twice, "branch3x3dbl_3", 96, kHalving);
    return joined({three, twice, halved()});
  }

  // 17 x 17: 1x1, 7x7 and two 7x7, each factored into 1x7 and 7x1, pooled.
  TensorId c(std::int64_t inner) const {
    const TensorId one = make(x_, "branch1x1", 192);
    TensorId seven = make(x_, "branch7x7_1", inner);
    seven = make(seven, "branch7x7_2", inner, k1x7);
    seven = make(seven, "branch7x7_3", 192, k7x1);
    TensorId twice = make(x_, "branch7x7dbl_1", inner);
    twice = make(twice, "branch7x7dbl_2", inner, k7x1);
    twice = make(twice, "branch7x7dbl_3", inner, k1x7);
    twice = make(twice, "branch7x7dbl_4", inner, k7x1);
    twice = make(twice, "branch7x7dbl_5", 192, k1x7);
    return joined({one, seven, twice, pooled(192)});
  }

  // To 8 x 8.
  TensorId d() const {
    TensorId three = make(x_, "branch3x3_1", 192);
    three = make(three, "branch3x3_2", 320, kHalving);
    TensorId seven = make(x_, "branch7x7x3_1", 192);
    seven = make(seven, "branch7x7x3_2", 192, k1x7);
    seven = make(seven, "branch7x7x3_3", 192, k7x1);
    seven = make(seven, "branch7x7x3_4", 192, kHalving);
    return joined({three, seven, halved()});
  }

  // 8 x 8: branches that end in a 1x3 and a 3x1 side by side.
  TensorId e() const {
    const TensorId one = make(x_, "branch1x1", 320);
    const TensorId three = make(x_, "branch3x3_1", 384);
    const TensorId three_a = make(three, "branch3x3_2a", 384, k1x3);
    const TensorId three_b = make(three, "branch3x3_2b", 384, k3x1);
    TensorId twice = make(x_, "branch3x3dbl_1", 448);
    twice = make(twice, "branch3x3dbl_2", 384, k3x3);
    const TensorId twice_a = make(twice, "branch3x3dbl_3a", 384, k1x3);
    const TensorId twice_b = make(twice, "branch3x3dbl_3b", 384, k3x1);
    return joined({one, three_a, three_b, twice_a, twice_b, pooled(192)});
  }

 private:
  TensorId make(TensorId x, const char* branch, std::int64_t channels,
                const Kernel& kernel = {}) const {
    return units_(x, name_ + "." + branch, channels, kernel);
  }
  TensorId pooled(std::int64_t channels) const {
    const TensorId x = average_pool(units_.program(), x_, name_ + ".average",
                                    {.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}});
    return make(x, "branch_pool", channels);
  }
  TensorId halved() const {
    return max_pool(units_.program(), x_, name_ + ".branch_pool",
                    {.kernel = {3, 3}, .stride = {2, 2}, .padding = {0, 0}});
  }
  TensorId joined(const std::vector<TensorId>& branches) const {
    return concat(units_.program(), branches, name_);
  }

  const BasicConv2d& units_;
  TensorId x_;
  std::string name_;
};

}  // namespace

TensorId inception_v3(Program& program, const NetworkSpec& spec, TensorId images) {
  const BasicConv2d units(program, spec);
  const auto halve = [&](TensorId x, const char* name) {
    return max_pool(program, x, name, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {0, 0}});
  };
  TensorId x = units.first(images, "Conv2d_1a_3x3", 32, kHalving);
  x = units(x, "Conv2d_2a_3x3", 32, {{3, 3}});
  x = units(x, "Conv2d_2b_3x3", 64, k3x3);
  x = halve(x, "maxpool1");
  x = units(x, "Conv2d_3b_1x1", 80);
  x = units(x, "Conv2d_4a_3x3", 192, {{3, 3}});
  x = halve(x, "maxpool2");
  x = Blocks(units, x, "Mixed_5b").a(32);
  x = Blocks(units, x, "Mixed_5c").a(64);
  x = Blocks(units, x, "Mixed_5d").a(64);
  x = Blocks(units, x, "Mixed_6a").b();
  x = Blocks(units, x, "Mixed_6b").c(128);
  x = Blocks(units, x, "Mixed_6c").c(160);
  x = Blocks(units, x, "Mixed_6d").c(160);
  x = Blocks(units, x, "Mixed_6e").c(192);
  x = Blocks(units, x, "Mixed_7a").d();
  x = Blocks(units, x, "Mixed_7b").e();
  return Blocks(units, x, "Mixed_7c").e();
}

}  // namespace rk
