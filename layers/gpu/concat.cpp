#include "kernels/blocks/elementwise_block.h"
#include "kernels/launch.h"
#include "layers/gpu/nodes.h"

namespace rk::gpu {
namespace {

template <class T> class ConcatNode final : public Node {
 public:
  ConcatNode(const std::string& name, const Program& program)
      : Node(name), context_(program.context()) {}

  std::string_view kind() const override { return "concatenation"; }
  // An input that already lies inside the output needs no copy, forward or backward.
  void forward() override {
    T* y = memory_.output.as<T>();
    for (const Tensor& x : memory_.inputs) {
      const std::int64_t channels = x.shape[3];
      if (x.data != y) {
        launch(CopyChannels<T>{.rows = x.elements() / channels,
                               .channels = static_cast<int>(channels),
                               .x = x.as<T>(),
                               .x_stride = x.row_stride,
                               .y = y,
                               .y_stride = memory_.output.row_stride},
               context_.stream());
      }
      y += channels;
    }
  }

  void backward() override {
    const T* dy = memory_.output_gradient.as<T>();
    for (std::size_t i = 0; i < memory_.inputs.size(); ++i) {
      const Tensor& dx = memory_.input_gradients[i];
      const std::int64_t channels = dx.shape[3];
      if (dx.data != nullptr && dx.data != dy) {
        launch(CopyChannels<T>{.rows = dx.elements() / channels,
                               .channels = static_cast<int>(channels),
                               .x = dy,
                               .x_stride = memory_.output_gradient.row_stride,
                               .y = dx.as<T>(),
                               .y_stride = dx.row_stride,
                               .accumulate = memory_.uses[i].accumulate},
               context_.stream());
      }
      dy += channels;
    }
  }

 private:
  const Context& context_;
};

}  // namespace

std::unique_ptr<Node> concat_node(const std::string& name, const Program& program) {
  return with_image_type(program.options().precision, [&]<class T>() -> std::unique_ptr<Node> {
    return std::make_unique<ConcatNode<T>>(name, program);
  });
}

}  // namespace rk::gpu
