#include "tests/support/torchvision.h"

#include <array>
#include <cstddef>

namespace rk::golden {
namespace {

class List {
 public:
  void convolution(const std::string& name, std::int64_t out, std::int64_t in, std::int64_t side) {
    entries_.push_back({name + ".weight", {out, in, side, side}});
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

std::vector<NamedShape> torchvision_resnet(bool bottleneck) {
  const std::array<int, 4> blocks =
      bottleneck ? std::array<int, 4>{3, 4, 6, 3} : std::array<int, 4>{2, 2, 2, 2};
  const std::int64_t expansion = bottleneck ? 4 : 1;
  List list;
  list.convolution("conv1", 64, 3, 7);
  list.norm("bn1", 64);
  std::int64_t in = 64;
  for (std::size_t layer = 0; layer < 4; ++layer) {
    const std::int64_t width = std::int64_t{64} << layer;
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

}  // namespace rk::golden
