#include "tests/support/weights/torchvision.h"

#include <array>
#include <cstddef>
#include <sstream>
#include <stdexcept>
#include <string_view>

namespace rk::golden {
namespace {

class List {
 public:
  void convolution(const std::string& name, std::int64_t out, std::int64_t in, std::int64_t side) {
    entries_.push_back({name + ".weight", {out, in, side, side}});
  }
  // Each unit: name, outputs, inputs, kernel as "3x3" or "1x7".
  void basics(const std::string& block, std::string_view lines) {
    std::istringstream all{std::string(lines)};
    for (std::string name; all >> name;) {
      std::int64_t out = 0, in = 0, height = 0, width = 0;
      char by = 'x';
      all >> out >> in >> height >> by >> width;
      const std::string unit = block.empty() ? name : block + "." + name;
      entries_.push_back({unit + ".conv.weight", {out, in, height, width}});
      norm(unit + ".bn", out);
    }
  }
  void norm(const std::string& name, std::int64_t channels) {
    for (const char* end : {".weight", ".bias", ".running_mean", ".running_var"}) {
      entries_.push_back({name + end, {channels}});
    }
    entries_.push_back({name + ".num_batches_tracked", {}});
  }
  void linear(const std::string& name, std::int64_t out, std::int64_t in) {
    entries_.push_back({name + ".weight", {out, in}});
    entries_.push_back({name + ".bias", {out}});
  }
  std::vector<NamedShape> take() { return std::move(entries_); }

 private:
  std::vector<NamedShape> entries_;
};

}  // namespace

namespace {

std::vector<NamedShape> resnet(const std::vector<int>& blocks, bool bottleneck,
                               std::int64_t channels, std::int64_t first) {
  const std::int64_t expansion = bottleneck ? 4 : 1;
  List list;
  list.convolution("conv1", channels, 3, first);
  list.norm("bn1", channels);
  std::int64_t in = channels;
  for (std::size_t layer = 0; layer < blocks.size(); ++layer) {
    const std::int64_t width = channels << layer;
    const std::int64_t out = width * expansion;
    for (int block = 0; block < blocks[layer]; ++block) {
      const std::string prefix =
          "layer" + std::to_string(layer + 1) + "." + std::to_string(block) + ".";
      list.convolution(prefix + "conv1", width, in, bottleneck ? 1 : 3);
      list.norm(prefix + "bn1", width);
      list.convolution(prefix + "conv2", width, width, 3);
      list.norm(prefix + "bn2", width);
      if (bottleneck) {
        list.convolution(prefix + "conv3", out, width, 1);
        list.norm(prefix + "bn3", out);
      }
      if (block == 0 && (layer > 0 || in != out)) {
        list.convolution(prefix + "downsample.0", out, in, 1);
        list.norm(prefix + "downsample.1", out);
      }
      in = out;
    }
  }
  list.linear("fc", 1000, in);
  return list.take();
}

std::vector<NamedShape> googlenet() {
  List list;
  list.basics("", "conv1 64 3 7x7 conv2 64 64 1x1 conv3 192 64 3x3");
  list.basics("inception3a",
              "branch1 64 192 1x1 branch2.0 96 192 1x1 branch2.1 128 96 3x3 "
              "branch3.0 16 192 1x1 branch3.1 32 16 3x3 branch4.1 32 192 1x1");
  list.basics("inception3b",
              "branch1 128 256 1x1 branch2.0 128 256 1x1 branch2.1 192 128 3x3 "
              "branch3.0 32 256 1x1 branch3.1 96 32 3x3 branch4.1 64 256 1x1");
  list.basics("inception4a",
              "branch1 192 480 1x1 branch2.0 96 480 1x1 branch2.1 208 96 3x3 "
              "branch3.0 16 480 1x1 branch3.1 48 16 3x3 branch4.1 64 480 1x1");
  list.basics("inception4b",
              "branch1 160 512 1x1 branch2.0 112 512 1x1 branch2.1 224 112 3x3 "
              "branch3.0 24 512 1x1 branch3.1 64 24 3x3 branch4.1 64 512 1x1");
  list.basics("inception4c",
              "branch1 128 512 1x1 branch2.0 128 512 1x1 branch2.1 256 128 3x3 "
              "branch3.0 24 512 1x1 branch3.1 64 24 3x3 branch4.1 64 512 1x1");
  list.basics("inception4d",
              "branch1 112 512 1x1 branch2.0 144 512 1x1 branch2.1 288 144 3x3 "
              "branch3.0 32 512 1x1 branch3.1 64 32 3x3 branch4.1 64 512 1x1");
  list.basics("inception4e",
              "branch1 256 528 1x1 branch2.0 160 528 1x1 branch2.1 320 160 3x3 "
              "branch3.0 32 528 1x1 branch3.1 128 32 3x3 branch4.1 128 528 1x1");
  list.basics("inception5a",
              "branch1 256 832 1x1 branch2.0 160 832 1x1 branch2.1 320 160 3x3 "
              "branch3.0 32 832 1x1 branch3.1 128 32 3x3 branch4.1 128 832 1x1");
  list.basics("inception5b",
              "branch1 384 832 1x1 branch2.0 192 832 1x1 branch2.1 384 192 3x3 "
              "branch3.0 48 832 1x1 branch3.1 128 48 3x3 branch4.1 128 832 1x1");
  list.linear("fc", 1000, 1024);
  return list.take();
}

std::vector<NamedShape> inception_v3() {
  List list;
  list.basics("",
              "Conv2d_1a_3x3 32 3 3x3 Conv2d_2a_3x3 32 32 3x3 Conv2d_2b_3x3 64 32 3x3 "
              "Conv2d_3b_1x1 80 64 1x1 Conv2d_4a_3x3 192 80 3x3");
  list.basics("Mixed_5b",
              "branch1x1 64 192 1x1 branch5x5_1 48 192 1x1 branch5x5_2 64 48 5x5 "
              "branch3x3dbl_1 64 192 1x1 branch3x3dbl_2 96 64 3x3 branch3x3dbl_3 96 96 3x3 "
              "branch_pool 32 192 1x1");
  list.basics("Mixed_5c",
              "branch1x1 64 256 1x1 branch5x5_1 48 256 1x1 branch5x5_2 64 48 5x5 "
              "branch3x3dbl_1 64 256 1x1 branch3x3dbl_2 96 64 3x3 branch3x3dbl_3 96 96 3x3 "
              "branch_pool 64 256 1x1");
  list.basics("Mixed_5d",
              "branch1x1 64 288 1x1 branch5x5_1 48 288 1x1 branch5x5_2 64 48 5x5 "
              "branch3x3dbl_1 64 288 1x1 branch3x3dbl_2 96 64 3x3 branch3x3dbl_3 96 96 3x3 "
              "branch_pool 64 288 1x1");
  list.basics("Mixed_6a",
              "branch3x3 384 288 3x3 branch3x3dbl_1 64 288 1x1 branch3x3dbl_2 96 64 3x3 "
              "branch3x3dbl_3 96 96 3x3");
  list.basics("Mixed_6b",
              "branch1x1 192 768 1x1 branch7x7_1 128 768 1x1 branch7x7_2 128 128 1x7 "
              "branch7x7_3 192 128 7x1 branch7x7dbl_1 128 768 1x1 branch7x7dbl_2 128 128 7x1 "
              "branch7x7dbl_3 128 128 1x7 branch7x7dbl_4 128 128 7x1 "
              "branch7x7dbl_5 192 128 1x7 branch_pool 192 768 1x1");
  list.basics("Mixed_6c",
              "branch1x1 192 768 1x1 branch7x7_1 160 768 1x1 branch7x7_2 160 160 1x7 "
              "branch7x7_3 192 160 7x1 branch7x7dbl_1 160 768 1x1 branch7x7dbl_2 160 160 7x1 "
              "branch7x7dbl_3 160 160 1x7 branch7x7dbl_4 160 160 7x1 "
              "branch7x7dbl_5 192 160 1x7 branch_pool 192 768 1x1");
  list.basics("Mixed_6d",
              "branch1x1 192 768 1x1 branch7x7_1 160 768 1x1 branch7x7_2 160 160 1x7 "
              "branch7x7_3 192 160 7x1 branch7x7dbl_1 160 768 1x1 branch7x7dbl_2 160 160 7x1 "
              "branch7x7dbl_3 160 160 1x7 branch7x7dbl_4 160 160 7x1 "
              "branch7x7dbl_5 192 160 1x7 branch_pool 192 768 1x1");
  list.basics("Mixed_6e",
              "branch1x1 192 768 1x1 branch7x7_1 192 768 1x1 branch7x7_2 192 192 1x7 "
              "branch7x7_3 192 192 7x1 branch7x7dbl_1 192 768 1x1 branch7x7dbl_2 192 192 7x1 "
              "branch7x7dbl_3 192 192 1x7 branch7x7dbl_4 192 192 7x1 "
              "branch7x7dbl_5 192 192 1x7 branch_pool 192 768 1x1");
  list.basics("Mixed_7a",
              "branch3x3_1 192 768 1x1 branch3x3_2 320 192 3x3 branch7x7x3_1 192 768 1x1 "
              "branch7x7x3_2 192 192 1x7 branch7x7x3_3 192 192 7x1 branch7x7x3_4 192 192 3x3");
  list.basics("Mixed_7b",
              "branch1x1 320 1280 1x1 branch3x3_1 384 1280 1x1 branch3x3_2a 384 384 1x3 "
              "branch3x3_2b 384 384 3x1 branch3x3dbl_1 448 1280 1x1 branch3x3dbl_2 384 448 3x3 "
              "branch3x3dbl_3a 384 384 1x3 branch3x3dbl_3b 384 384 3x1 branch_pool 192 1280 1x1");
  list.basics("Mixed_7c",
              "branch1x1 320 2048 1x1 branch3x3_1 384 2048 1x1 branch3x3_2a 384 384 1x3 "
              "branch3x3_2b 384 384 3x1 branch3x3dbl_1 448 2048 1x1 branch3x3dbl_2 384 448 3x3 "
              "branch3x3dbl_3a 384 384 1x3 branch3x3dbl_3b 384 384 3x1 branch_pool 192 2048 1x1");
  list.linear("fc", 1000, 2048);
  return list.take();
}

}  // namespace

std::vector<NamedShape> torchvision_network(const std::string& arch) {
  if (arch == "resnet20") return resnet({3, 3, 3}, false, 16, 3);
  if (arch == "resnet18") return resnet({2, 2, 2, 2}, false, 64, 7);
  if (arch == "resnet50") return resnet({3, 4, 6, 3}, true, 64, 7);
  if (arch == "googlenet") return googlenet();
  if (arch == "inception_v3") return inception_v3();
  throw std::invalid_argument("no list of " + arch);
}

}  // namespace rk::golden
