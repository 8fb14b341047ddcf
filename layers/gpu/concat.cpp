#include "engine/device/cuda/context.h"
#include "kernels/blocks/elementwise_block.h"
#include "kernels/launch.h"
#include "layers/gpu/nodes.h"

namespace rk::gpu {
namespace {

template <class T> class ConcatNode final : public Node {
 public:
  ConcatNode(const std::string& name, const Program& program)
      : Node(name), context_(program.context()) {}

  void forward() override {
    std::int64_t first = 0;
    for (const Tensor& x : memory_.inputs) {
      launch(CopyChannels<T>{.rows = x.elements() / x.shape[3],
                             .channels = static_cast<int>(x.shape[3]),
                             .x = x.as<T>(),
                             .x_stride = x.row_stride,
                             .y = memory_.output.as<T>() + first,
                             .y_stride = memory_.output.row_stride},
             context_.cuda().stream());
      first += x.shape[3];
    }
  }

  void backward() override {
    std::int64_t first = 0;
    for (std::size_t i = 0; i < memory_.inputs.size(); ++i) {
      const Tensor& dx = memory_.input_gradients[i];
      if (dx.data != nullptr) {
        launch(CopyChannels<T>{.rows = dx.elements() / dx.shape[3],
                               .channels = static_cast<int>(dx.shape[3]),
                               .x = memory_.output_gradient.as<T>() + first,
                               .x_stride = memory_.output_gradient.row_stride,
                               .y = dx.as<T>(),
                               .y_stride = dx.row_stride,
                               .accumulate = memory_.uses[i].accumulate},
               context_.cuda().stream());
      }
      first += dx.shape[3];
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
