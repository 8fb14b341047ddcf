#include "layers/elementwise.h"

#include "engine/base/error.h"
#include "kernels/blocks/elementwise_block.h"
#include "kernels/half_element.h"
#include "kernels/launch.h"

namespace rk {
namespace {

template <class T> class ReluNode final : public Node {
 public:
  ReluNode(const std::string& name, const Context& context) : Node(name), context_(context) {}

  std::string_view kind() const override { return "ReLU"; }
  void forward() override {
    launch(context_, Relu<T>{.count = memory_.output.elements(),
                             .x = memory_.inputs[0].template as<T>(),
                             .y = memory_.output.template as<T>()});
  }
  void backward() override {
    const Tensor& dx = memory_.input_gradients[0];
    if (dx.data == nullptr) return;
    launch(context_, ReluGradient<T>{.count = memory_.output.elements(),
                                     .z = memory_.inputs[0].template as<T>(),
                                     .dy = memory_.output_gradient.template as<T>(),
                                     .dx = dx.as<T>(),
                                     .accumulate = memory_.uses[0].accumulate});
  }

 private:
  const Context& context_;
};

template <class T> class AddNode final : public Node {
 public:
  AddNode(const std::string& name, const Context& context) : Node(name), context_(context) {}

  std::string_view kind() const override { return "addition"; }
  void choose_layouts(ChannelBlocks& blocks) override { blocks.inputs[1] = blocks.inputs[0]; }

  void forward() override {
    launch(context_, AddTensors<T>{.count = memory_.output.elements(),
                                   .a = memory_.inputs[0].template as<T>(),
                                   .b = memory_.inputs[1].template as<T>(),
                                   .y = memory_.output.template as<T>()});
  }
  void backward() override {
    const T* dy = memory_.output_gradient.template as<T>();
    for (std::size_t i = 0; i < memory_.input_gradients.size(); ++i) {
      T* dx = memory_.input_gradients[i].template as<T>();
      if (dx == nullptr || dx == dy) continue;
      launch(context_, CopyOrAdd<T>{.count = memory_.output.elements(),
                                    .x = dy,
                                    .y = dx,
                                    .accumulate = memory_.uses[i].accumulate});
    }
  }

 private:
  const Context& context_;
};

// Creates a node for the element type of x.
template <template <class> class NodeOf>
std::unique_ptr<Node> node_like(const std::string& name, const Program& program, TensorId x) {
  return with_type(program.dtype(x), [&]<class T>() -> std::unique_ptr<Node> {
    return std::make_unique<NodeOf<T>>(name, program.context());
  });
}

NodeOutput like(const Program& program, TensorId x, const std::string& name) {
  return {.name = name, .shape = program.shape(x), .dtype = program.dtype(x)};
}

}  // namespace

TensorId relu(Program& program, TensorId x, const std::string& name) {
  const NodeInput input{.tensor = x, .read_in_backward = true, .gradient_in_place = true};
  return program.append(node_like<ReluNode>(name, program, x), {input}, like(program, x, name));
}

TensorId add(Program& program, TensorId a, TensorId b, const std::string& name) {
  const Shape& shape = program.shape(a);
  expect(shape == program.shape(b), "[{}] expected two tensors of one shape, got {} and {}", name,
         shape.text(), program.shape(b).text());
  const std::vector<NodeInput> inputs = {{.tensor = a, .gradient_in_place = true},
                                         {.tensor = b, .gradient_in_place = true}};
  return program.append(node_like<AddNode>(name, program, a), inputs, like(program, a, name));
}

}  // namespace rk
