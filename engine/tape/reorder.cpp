#include "engine/tape/reorder.h"

#include "engine/base/parallel.h"

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
  void copy(const ImageLayout& from, const float* x, const ImageLayout& to, float* y,
            bool accumulate) const {
    const auto at = [](const ImageLayout& layout, std::int64_t image, std::int64_t pixel,
                       std::int64_t channel) {
      return (image * layout.blocks + channel / layout.block) * layout.plane() +
             pixel * layout.block + channel % layout.block;
    };
    parallel_for(threads_, from.batch, [&](std::int64_t n, int) {
      for (std::int64_t p = 0; p < from.pixels(); ++p) {
        for (std::int64_t c = 0; c < from.channels(); ++c) {
          const float value = x[at(from, n, p, c)];
          float& place = y[at(to, n, p, c)];
          place = accumulate ? place + value : value;
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
