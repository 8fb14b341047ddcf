#include "kernels/blocks/average_pool_block.h"
#include "kernels/blocks/global_pool_block.h"
#include "kernels/blocks/max_pool_block.h"
#include "kernels/launch.h"
#include "layers/gpu/nodes.h"

namespace rk::gpu {
namespace {

PoolShape pool_shape(const Shape& x, const Shape& y, const PoolOptions& options) {
  PoolShape shape{.batch = static_cast<int>(x[0]),
                  .channels = static_cast<int>(x[3]),
                  .height = static_cast<int>(x[1]),
                  .width = static_cast<int>(x[2]),
                  .out_height = static_cast<int>(y[1]),
                  .out_width = static_cast<int>(y[2])};
  for (std::size_t axis = 0; axis < 2; ++axis) {
    shape.kernel[axis] = static_cast<int>(options.kernel[axis]);
    shape.stride[axis] = static_cast<int>(options.stride[axis]);
    shape.padding[axis] = static_cast<int>(options.padding[axis]);
  }
  return shape;
}

// A pooling over windows that may write y, and read dy, inside a larger tensor's channels.
class WindowPoolNode : public Node {
 public:
  WindowPoolNode(const std::string& name, const Program& program, const PoolShape& shape)
      : Node(name), context_(program.context()), shape_(shape) {}
  std::string_view kind() const override { return "pooling"; }
  void set_row_stride(std::int64_t row_stride) final {
    shape_.y_stride = static_cast<int>(row_stride);
  }

 protected:
  const Context& context_;
  PoolShape shape_;
};

template <class T> class MaxPoolNode final : public WindowPoolNode {
 public:
  MaxPoolNode(const std::string& name, const Program& program, const PoolShape& shape)
      : WindowPoolNode(name, program, shape), gradients_(program.options().gradients) {}

  void plan(const std::vector<EdgeUse>& uses) override { masks_ = uses[0].mask; }
  void carve(Carver& saved, Carver& /*workspace*/) override {
    const auto pixels = std::int64_t{shape_.batch} * shape_.out_height * shape_.out_width;
    if (gradients_) choice_ = saved.take<std::uint8_t>(pixels * shape_.channels);
  }
  void forward() override {
    launch(MaxPool<T>{.shape = shape_,
                      .x = memory_.inputs[0].template as<T>(),
                      .y = memory_.output.as<T>(),
                      .choice = choice_,
                      .of_relu = masks_},
           context_.stream());
  }
  void backward() override {
    auto* dx = memory_.input_gradients[0].template as<T>();
    if (dx == nullptr) return;
    launch(MaxPoolGradient<T>{.shape = shape_,
                              .choice = choice_,
                              .dy = memory_.output_gradient.as<T>(),
                              .dx = dx,
                              .accumulate = memory_.uses[0].accumulate},
           context_.stream());
  }

 private:
  bool gradients_;
  bool masks_ = false;
  std::uint8_t* choice_ = nullptr;  // which pixel of its window each output is
};

template <class T> class AveragePoolNode final : public WindowPoolNode {
 public:
  using WindowPoolNode::WindowPoolNode;

  void forward() override {
    launch(
        AveragePool<T>{
            .shape = shape_, .x = memory_.inputs[0].template as<T>(), .y = memory_.output.as<T>()},
        context_.stream());
  }
  void backward() override {
    auto* dx = memory_.input_gradients[0].template as<T>();
    if (dx == nullptr) return;
    launch(AveragePoolGradient<T>{.shape = shape_,
                                  .dy = memory_.output_gradient.as<T>(),
                                  .dx = dx,
                                  .accumulate = memory_.uses[0].accumulate},
           context_.stream());
  }
};

template <class T> class GlobalPoolNode final : public Node {
 public:
  GlobalPoolNode(const std::string& name, const Program& program, const Shape& x,
                 const GlobalPoolOptions& options)
      : Node(name),
        context_(program.context()),
        batch_(static_cast<int>(x[0])),
        rows_(static_cast<int>(x[1] * x[2])),
        channels_(static_cast<int>(x[3])),
        options_(options),
        keeps_rows_(program.options().gradients && options.kind == PoolKind::kMax) {}

  std::string_view kind() const override { return "pooling"; }
  void carve(Carver& saved, Carver& /*workspace*/) override {
    if (keeps_rows_) best_ = saved.take<std::int32_t>(std::int64_t{batch_} * channels_);
  }
  void forward() override {
    launch(GlobalPool<T>{.batch = batch_,
                         .rows = rows_,
                         .channels = channels_,
                         .kind = options_.kind,
                         .p = static_cast<float>(options_.gem.p),
                         .epsilon = static_cast<float>(options_.gem.epsilon),
                         .x = memory_.inputs[0].template as<T>(),
                         .best = best_,
                         .y = memory_.output.as<float>()},
           context_.stream());
  }
  void backward() override {
    auto* dx = memory_.input_gradients[0].template as<T>();
    if (dx == nullptr) return;
    launch(GlobalPoolGradient<T>{.batch = batch_,
                                 .rows = rows_,
                                 .channels = channels_,
                                 .kind = options_.kind,
                                 .p = static_cast<float>(options_.gem.p),
                                 .epsilon = static_cast<float>(options_.gem.epsilon),
                                 .x = memory_.inputs[0].template as<T>(),
                                 .y = memory_.output.as<float>(),
                                 .best = best_,
                                 .dy = memory_.output_gradient.as<float>(),
                                 .dx = dx,
                                 .accumulate = memory_.uses[0].accumulate},
           context_.stream());
  }

 private:
  const Context& context_;
  int batch_, rows_, channels_;
  GlobalPoolOptions options_;
  bool keeps_rows_;
  std::int32_t* best_ = nullptr;  // the row of each maximum
};

}  // namespace

std::unique_ptr<Node> max_pool_node(const std::string& name, const Program& program, const Shape& x,
                                    const Shape& y, const PoolOptions& options) {
  return with_image_type(program.options().precision, [&]<class T>() -> std::unique_ptr<Node> {
    return std::make_unique<MaxPoolNode<T>>(name, program, pool_shape(x, y, options));
  });
}

std::unique_ptr<Node> average_pool_node(const std::string& name, const Program& program,
                                        const Shape& x, const Shape& y,
                                        const PoolOptions& options) {
  return with_image_type(program.options().precision, [&]<class T>() -> std::unique_ptr<Node> {
    return std::make_unique<AveragePoolNode<T>>(name, program, pool_shape(x, y, options));
  });
}

std::unique_ptr<Node> global_pool_node(const std::string& name, const Program& program,
                                       const Shape& x, const GlobalPoolOptions& options) {
  return with_image_type(program.options().precision, [&]<class T>() -> std::unique_ptr<Node> {
    return std::make_unique<GlobalPoolNode<T>>(name, program, x, options);
  });
}

}  // namespace rk::gpu
