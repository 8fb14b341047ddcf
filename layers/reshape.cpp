#include "layers/reshape.h"

#include "engine/base/error.h"
#include "kernels/blocks/elementwise_block.h"
#include "kernels/half_element.h"
#include "kernels/launch.h"

namespace rk {
namespace {

// A tensor that does not lie inside x (or inside its gradient) is dense; x and its gradient may
// have strided rows.
template <class T> class ReshapeNode final : public Node {
 public:
  ReshapeNode(const std::string& name, const Context& context, const Shape& x, const Shape& y)
      : Node(name),
        context_(context),
        x_block_(nhwc(x)),
        y_block_(nhwc(y)),
        row_(x[x.rank() - 1]),
        rows_(row_ > 0 ? x.elements() / row_ : 0) {}

  void choose_layouts(ChannelBlocks& blocks) override { blocks = {{x_block_}, y_block_}; }

  void forward() override {
    const Tensor &x = memory_.inputs[0], &y = memory_.output;
    if (x.data == y.data) return;
    launch(context_, CopyChannels<T>{.rows = rows_,
                                     .channels = static_cast<int>(row_),
                                     .x = x.as<T>(),
                                     .x_stride = x.row_stride,
                                     .y = y.as<T>(),
                                     .y_stride = row_});
  }

  void backward() override {
    const Tensor &dx = memory_.input_gradients[0], &dy = memory_.output_gradient;
    if (dx.data == nullptr || dx.data == dy.data) return;
    launch(context_, CopyChannels<T>{.rows = rows_,
                                     .channels = static_cast<int>(row_),
                                     .x = dy.as<T>(),
                                     .x_stride = row_,
                                     .y = dx.as<T>(),
                                     .y_stride = dx.row_stride,
                                     .accumulate = memory_.uses[0].accumulate});
  }

 private:
  static std::int64_t nhwc(const Shape& shape) { return shape.rank() == 4 ? shape[3] : 0; }

  const Context& context_;
  std::int64_t x_block_, y_block_;
  std::int64_t row_, rows_;
};

}  // namespace

TensorId reshape(Program& program, TensorId x, const Shape& shape, const std::string& name) {
  const Shape in = program.shape(x);
  expect(in.rank() > 0 && shape.rank() > 0 && shape.elements() == in.elements(),
         "[{}] expected a shape of the elements of {}, got {}", name, in.text(), shape.text());
  if (shape == in) return x;
  const NodeOutput output{.name = name, .shape = shape, .dtype = program.dtype(x), .part_at = 0};
  auto node = with_type(program.dtype(x), [&]<class T>() -> std::unique_ptr<Node> {
    return std::make_unique<ReshapeNode<T>>(name, program.context(), in, shape);
  });
  return program.append(std::move(node), {{.tensor = x, .gradient_in_place = true, .spaced = true}},
                        output);
}

}  // namespace rk
