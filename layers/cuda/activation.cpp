#include "engine/device/cuda/context.h"
#include "kernels/blocks/elementwise_block.h"
#include "kernels/launch.h"
#include "layers/cuda/element.h"
#include "layers/cuda/nodes.h"

namespace rk::gpu {
namespace {

template <class T> class ReluNode final : public Node {
 public:
  ReluNode(const std::string& name, const Program& program, std::int64_t elements)
      : Node(name), context_(program.context()), elements_(elements) {}
  void forward() override {
    launch(Relu<T>{.count = elements_, .x = memory_.inputs[0].as<T>(), .y = memory_.output.as<T>()},
           context_.cuda().stream());
  }
  void backward() override {
    auto* dx = memory_.input_gradients[0].as<T>();
    if (dx == nullptr) return;
    launch(ReluGradient<T>{.count = elements_,
                           .z = memory_.inputs[0].as<T>(),
                           .dy = memory_.output_gradient.as<T>(),
                           .dx = dx,
                           .accumulate = memory_.uses[0].accumulate},
           context_.cuda().stream());
  }

 private:
  const Context& context_;
  std::int64_t elements_;
};

template <class T> class AddNode final : public Node {
 public:
  AddNode(const std::string& name, const Program& program, std::int64_t elements)
      : Node(name), context_(program.context()), elements_(elements) {}
  void forward() override {
    launch(AddTensors<T>{.count = elements_,
                         .a = memory_.inputs[0].as<T>(),
                         .b = memory_.inputs[1].template as<T>(),
                         .y = memory_.output.as<T>()},
           context_.cuda().stream());
  }
  void backward() override {
    const T* dy = memory_.output_gradient.as<T>();
    for (std::size_t i = 0; i < 2; ++i) {
      auto* gradient = memory_.input_gradients[i].template as<T>();
      if (gradient == nullptr || gradient == dy) continue;
      launch(
          CopyOrAdd<T>{
              .count = elements_, .x = dy, .y = gradient, .accumulate = memory_.uses[i].accumulate},
          context_.cuda().stream());
    }
  }

 private:
  const Context& context_;
  std::int64_t elements_;
};

}  // namespace

std::unique_ptr<Node> relu_node(const std::string& name, const Program& program,
                                std::int64_t elements) {
  return with_image_type(program.options().precision, [&]<class T>() -> std::unique_ptr<Node> {
    return std::make_unique<ReluNode<T>>(name, program, elements);
  });
}

std::unique_ptr<Node> add_node(const std::string& name, const Program& program,
                               std::int64_t elements) {
  return with_image_type(program.options().precision, [&]<class T>() -> std::unique_ptr<Node> {
    return std::make_unique<AddNode<T>>(name, program, elements);
  });
}

}  // namespace rk::gpu
