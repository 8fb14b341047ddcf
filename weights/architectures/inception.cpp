#include "weights/architectures/inception.h"

#include "weights/architectures/basic_conv2d.h"

namespace rk {
namespace {

constexpr Window kBare3x3{.size = {3, 3}};
constexpr Window kHalving{.size = {3, 3}, .stride = 2};
constexpr Window k5x5{.size = {5, 5}, .padding = {2, 2}};
constexpr Window k1x3{.size = {1, 3}, .padding = {0, 1}};
constexpr Window k3x1{.size = {3, 1}, .padding = {1, 0}};
constexpr Window k1x7{.size = {1, 7}, .padding = {0, 3}};
constexpr Window k7x1{.size = {7, 1}, .padding = {3, 0}};

LayerId halve(Backbone& net, LayerId x, const std::string& name) {
  return net.add(Pooling{.name = name, .x = x, .window = kHalving});
}

// A block, by torchvision's letters. x is its input, `name` its name and the
// prefix of its units' names.
class Block {
 public:
  Block(Backbone& net, LayerId x, const std::string& name) : net_(net), x_(x), name_(name) {}

  // 35 x 35 at 299 pixels: 1x1, 5x5, two 3x3, pooled.
  LayerId a(std::int64_t pooled_channels) const {
    const LayerId one = make(x_, "branch1x1", 64);
    LayerId five = make(x_, "branch5x5_1", 48);
    five = make(five, "branch5x5_2", 64, k5x5);
    LayerId three = make(x_, "branch3x3dbl_1", 64);
    three = make(three, "branch3x3dbl_2", 96, k3x3);
    three = make(three, "branch3x3dbl_3", 96, k3x3);
    return joined({one, five, three, pooled(pooled_channels)});
  }

  // To 17 x 17.
  LayerId b() const {
    const LayerId three = make(x_, "branch3x3", 384, kHalving);
    LayerId twice = make(x_, "branch3x3dbl_1", 64);
    twice = make(twice, "branch3x3dbl_2", 96, k3x3);
    twice = make(twice, "branch3x3dbl_3", 96, kHalving);
    return joined({three, twice, halved()});
  }

  // 17 x 17: 1x1, 7x7 and two 7x7, each factored into 1x7 and 7x1, pooled.
  LayerId c(std::int64_t inner) const {
    const LayerId one = make(x_, "branch1x1", 192);
    LayerId seven = make(x_, "branch7x7_1", inner);
    seven = make(seven, "branch7x7_2", inner, k1x7);
    seven = make(seven, "branch7x7_3", 192, k7x1);
    LayerId twice = make(x_, "branch7x7dbl_1", inner);
    twice = make(twice, "branch7x7dbl_2", inner, k7x1);
    twice = make(twice, "branch7x7dbl_3", inner, k1x7);
    twice = make(twice, "branch7x7dbl_4", inner, k7x1);
    twice = make(twice, "branch7x7dbl_5", 192, k1x7);
    return joined({one, seven, twice, pooled(192)});
  }

  // To 8 x 8.
  LayerId d() const {
    LayerId three = make(x_, "branch3x3_1", 192);
    three = make(three, "branch3x3_2", 320, kHalving);
    LayerId seven = make(x_, "branch7x7x3_1", 192);
    seven = make(seven, "branch7x7x3_2", 192, k1x7);
    seven = make(seven, "branch7x7x3_3", 192, k7x1);
    seven = make(seven, "branch7x7x3_4", 192, kHalving);
    return joined({three, seven, halved()});
  }

  // 8 x 8: branches that end in a 1x3 and a 3x1 side by side.
  LayerId e() const {
    const LayerId one = make(x_, "branch1x1", 320);
    const LayerId three = make(x_, "branch3x3_1", 384);
    const LayerId three_a = make(three, "branch3x3_2a", 384, k1x3);
    const LayerId three_b = make(three, "branch3x3_2b", 384, k3x1);
    LayerId twice = make(x_, "branch3x3dbl_1", 448);
    twice = make(twice, "branch3x3dbl_2", 384, k3x3);
    const LayerId twice_a = make(twice, "branch3x3dbl_3a", 384, k1x3);
    const LayerId twice_b = make(twice, "branch3x3dbl_3b", 384, k3x1);
    return joined({one, three_a, three_b, twice_a, twice_b, pooled(192)});
  }

 private:
  LayerId make(LayerId x, const char* branch, std::int64_t channels,
               const Window& window = {}) const {
    return basic_conv2d(net_, x, name_ + "." + branch, channels, window);
  }
  LayerId pooled(std::int64_t channels) const {
    const LayerId x = net_.add(Pooling{
        .name = name_ + ".average", .x = x_, .kind = Pooling::Kind::kAverage, .window = k3x3});
    return make(x, "branch_pool", channels);
  }
  LayerId halved() const { return halve(net_, x_, name_ + ".branch_pool"); }
  LayerId joined(const std::vector<LayerId>& branches) const {
    return net_.add(Concatenation{name_, branches});
  }

  Backbone& net_;
  LayerId x_;
  std::string name_;
};

}  // namespace

Backbone inception_v3() {
  Backbone net;
  LayerId x = basic_conv2d(net, kImages, "Conv2d_1a_3x3", 32, kHalving);
  x = basic_conv2d(net, x, "Conv2d_2a_3x3", 32, kBare3x3);
  x = basic_conv2d(net, x, "Conv2d_2b_3x3", 64, k3x3);
  x = halve(net, x, "maxpool1");
  x = basic_conv2d(net, x, "Conv2d_3b_1x1", 80);
  x = basic_conv2d(net, x, "Conv2d_4a_3x3", 192, kBare3x3);
  x = halve(net, x, "maxpool2");
  x = Block(net, x, "Mixed_5b").a(32);
  x = Block(net, x, "Mixed_5c").a(64);
  x = Block(net, x, "Mixed_5d").a(64);
  x = Block(net, x, "Mixed_6a").b();
  x = Block(net, x, "Mixed_6b").c(128);
  x = Block(net, x, "Mixed_6c").c(160);
  x = Block(net, x, "Mixed_6d").c(160);
  x = Block(net, x, "Mixed_6e").c(192);
  x = Block(net, x, "Mixed_7a").d();
  x = Block(net, x, "Mixed_7b").e();
  Block(net, x, "Mixed_7c").e();
  return net;
}

}  // namespace rk
