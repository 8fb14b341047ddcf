#include "layers/activation.h"

#include "engine/base/error.h"
#include "engine/device/dispatch.h"
#include "kernels/cpu/elementwise_cpu.h"
#include "layers/cuda/nodes.h"

namespace rk {
namespace {

class ReluNode : public Node {
 public:
  ReluNode(const std::string& name, const Program& program, std::int64_t elements)
      : Node(name), threads_(program.context().threads()), elements_(elements) {}
  void forward() override {
    elementwise_cpu::relu(threads_, elements_, memory_.inputs[0].as<float>(),
                          memory_.output.as<float>());
  }
  void backward() override {
    auto* dx = memory_.input_gradients[0].as<float>();
    if (dx == nullptr) return;
    elementwise_cpu::relu_backward(threads_, elements_, memory_.inputs[0].as<float>(),
                                   memory_.output_gradient.as<float>(), dx,
                                   memory_.uses[0].accumulate);
  }

 private:
  int threads_;
  std::int64_t elements_;
};

class AddNode : public Node {
 public:
  AddNode(const std::string& name, const Program& program, std::int64_t elements)
      : Node(name), threads_(program.context().threads()), elements_(elements) {}
  void forward() override {
    elementwise_cpu::add(threads_, elements_, memory_.inputs[0].as<float>(),
                         memory_.inputs[1].as<float>(), memory_.output.as<float>());
  }
  void backward() override {
    for (std::size_t i = 0; i < 2; ++i) {
      auto* gradient = memory_.input_gradients[i].as<float>();
      if (gradient == nullptr) continue;
      elementwise_cpu::copy(threads_, elements_, memory_.output_gradient.as<float>(), gradient,
                            memory_.uses[i].accumulate);
    }
  }

 private:
  int threads_;
  std::int64_t elements_;
};

}  // namespace

TensorId relu(Program& program, TensorId x, const std::string& name) {
  const Shape& shape = program.shape(x);
  const NodeInput input{.tensor = x, .read_in_backward = true, .gradient_in_place = true};
  const NodeOutput output{
      .name = name, .shape = shape, .width = program.width(x), .dtype = program.dtype(x)};
  if constexpr (kHasCuda) {
    if (program.on_gpu()) {
      return program.append(gpu::relu_node(name, program, shape.elements()), {input}, output);
    }
  }
  return program.append(std::make_unique<ReluNode>(name, program, shape.elements()), {input},
                        output);
}

TensorId add(Program& program, TensorId a, TensorId b, const std::string& name) {
  const Shape& shape = program.shape(a);
  expect(shape == program.shape(b) && program.width(a) == program.width(b),
         "[{}] expected two tensors of one shape and layout, got {} and {}", name, shape.text(),
         program.shape(b).text());
  std::vector<NodeInput> inputs = {{.tensor = a, .gradient_in_place = true},
                                   {.tensor = b, .gradient_in_place = true}};
  const NodeOutput output{
      .name = name, .shape = shape, .width = program.width(a), .dtype = program.dtype(a)};
  if constexpr (kHasCuda) {
    if (program.on_gpu()) {
      return program.append(gpu::add_node(name, program, shape.elements()), inputs, output);
    }
  }
  return program.append(std::make_unique<AddNode>(name, program, shape.elements()), inputs, output);
}

}  // namespace rk
