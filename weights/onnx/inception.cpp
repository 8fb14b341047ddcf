#include "weights/onnx/basic_conv2d.h"
#include "weights/onnx/networks.h"

#include <initializer_list>

namespace rk {
namespace {

constexpr OnnxSteps kHalving{.stride = 2, .padded = false};

// The blocks, by torchvision's letters; each reads `x`, and `name` is the prefix of its layers.
class Block {
 public:
  Block(OnnxGraph& graph, const std::string& x, const std::string& name)
      : graph_(graph), x_(x), name_(name) {}

  std::string a() const {
    return joined({through({"branch1x1"}), through({"branch5x5_1", "branch5x5_2"}),
                   through({"branch3x3dbl_1", "branch3x3dbl_2", "branch3x3dbl_3"}), pooled()});
  }
  std::string b() const {
    const std::string twice = through({"branch3x3dbl_1", "branch3x3dbl_2"});
    return joined(
        {unit(x_, "branch3x3", kHalving), unit(twice, "branch3x3dbl_3", kHalving), halved()});
  }
  std::string c() const {
    return joined({through({"branch1x1"}), through({"branch7x7_1", "branch7x7_2", "branch7x7_3"}),
                   through({"branch7x7dbl_1", "branch7x7dbl_2", "branch7x7dbl_3", "branch7x7dbl_4",
                            "branch7x7dbl_5"}),
                   pooled()});
  }
  std::string d() const {
    const std::string three = through({"branch3x3_1"});
    const std::string seven = through({"branch7x7x3_1", "branch7x7x3_2", "branch7x7x3_3"});
    return joined(
        {unit(three, "branch3x3_2", kHalving), unit(seven, "branch7x7x3_4", kHalving), halved()});
  }
  std::string e() const {
    const std::string three = through({"branch3x3_1"});
    const std::string twice = through({"branch3x3dbl_1", "branch3x3dbl_2"});
    return joined({through({"branch1x1"}), unit(three, "branch3x3_2a"), unit(three, "branch3x3_2b"),
                   unit(twice, "branch3x3dbl_3a"), unit(twice, "branch3x3dbl_3b"), pooled()});
  }

 private:
  std::string unit(const std::string& x, const char* branch, const OnnxSteps& steps = {}) const {
    return onnx_basic_conv2d(graph_, x, name_ + "." + branch, steps);
  }
  // Applies units that keep the size, one after the other.
  std::string through(std::initializer_list<const char*> branches) const {
    std::string x = x_;
    for (const char* branch : branches) x = unit(x, branch);
    return x;
  }
  std::string pooled() const {
    const std::string x =
        graph_.average_pool(x_, name_ + ".average", {.side = 3, .stride = 1, .padding = 1});
    return unit(x, "branch_pool");
  }
  std::string halved() const { return graph_.max_pool(x_, name_ + ".branch_pool", {}); }
  std::string joined(const std::vector<std::string>& branches) const {
    return graph_.concat(branches, name_);
  }

  OnnxGraph& graph_;
  std::string x_, name_;
};

}  // namespace

std::string onnx_inception_v3(OnnxGraph& graph, const std::string& images) {
  constexpr OnnxSteps kBare{.padded = false};
  std::string x = onnx_basic_conv2d(graph, images, "Conv2d_1a_3x3", kHalving);
  x = onnx_basic_conv2d(graph, x, "Conv2d_2a_3x3", kBare);
  x = onnx_basic_conv2d(graph, x, "Conv2d_2b_3x3");
  x = graph.max_pool(x, "maxpool1", {});
  x = onnx_basic_conv2d(graph, x, "Conv2d_3b_1x1");
  x = onnx_basic_conv2d(graph, x, "Conv2d_4a_3x3", kBare);
  x = graph.max_pool(x, "maxpool2", {});
  for (const char* name : {"Mixed_5b", "Mixed_5c", "Mixed_5d"}) x = Block(graph, x, name).a();
  x = Block(graph, x, "Mixed_6a").b();
  for (const char* name : {"Mixed_6b", "Mixed_6c", "Mixed_6d", "Mixed_6e"}) {
    x = Block(graph, x, name).c();
  }
  x = Block(graph, x, "Mixed_7a").d();
  for (const char* name : {"Mixed_7b", "Mixed_7c"}) x = Block(graph, x, name).e();
  return x;
}

}  // namespace rk
