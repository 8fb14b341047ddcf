#include "engine/tape/reorder.h"

#include "engine/base/parallel.h"

#include <algorithm>

namespace rk {
namespace {

class ReorderNode : public Node {
 public:
  ReorderNode(const std::string& name, int threads, const ImageLayout& x, const ImageLayout& y)
      : Node(name), threads_(threads), x_(x), y_(y) {}

  std::string_view kind() const override { return "reordering of channels"; }
  void choose_layouts(ChannelBlocks& blocks) override { blocks = {{x_.block}, y_.block}; }

  void forward() override {
    copy(x_, memory_.inputs[0].as<float>(), y_, memory_.output.as<float>(), false);
  }
  void backward() override {
    auto* dx = memory_.input_gradients[0].as<float>();
    if (dx == nullptr) return;
    copy(y_, memory_.output_gradient.as<float>(), x_, dx, memory_.uses[0].accumulate);
  }

 private:
  // Channels that are adjacent in both layouts are copied together.
  void copy(const ImageLayout& from, const float* x, const ImageLayout& to, float* y,
            bool accumulate) const {
    const auto start = [](const ImageLayout& layout, std::int64_t image, std::int64_t channel) {
      return (image * layout.blocks + channel / layout.block) * layout.plane() +
             channel % layout.block;
    };
    parallel_for(threads_, from.batch, [&](std::int64_t n, int) {
      for (std::int64_t c = 0, run = 0; c < from.channels(); c += run) {
        run = std::min(from.block - c % from.block, to.block - c % to.block);
        const float* source = x + start(from, n, c);
        float* target = y + start(to, n, c);
        for (std::int64_t p = 0; p < from.pixels(); ++p) {
          for (std::int64_t i = 0; i < run; ++i) {
            target[i] = accumulate ? target[i] + source[i] : source[i];
          }
          source += from.block;
          target += to.block;
        }
      }
    });
  }

  int threads_;
  ImageLayout x_, y_;
};

}  // namespace

std::unique_ptr<Node> reorder_node(const std::string& name, int threads, const ImageLayout& x,
                                   const ImageLayout& y) {
  return std::make_unique<ReorderNode>(name, threads, x, y);
}

}  // namespace rk
