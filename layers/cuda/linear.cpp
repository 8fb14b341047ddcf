#include "engine/device/cuda/context.h"
#include "kernels/blocks/head_block.h"
#include "kernels/launch.h"
#include "layers/cuda/nodes.h"

namespace rk::gpu {
namespace {

// In float32 throughout: the embedding layer is a thousandth of a network's work.
class LinearNode final : public Node {
 public:
  LinearNode(const std::string& name, const Program& program, const LinearArguments& arguments)
      : Node(name),
        context_(program.context()),
        parameters_(program.parameters()),
        arguments_(arguments) {}

  void forward() override {
    const auto [n, k, m, weight, bias] = arguments_;
    const CudaContext& cuda = context_.cuda();
    auto* y = memory_.output.as<float>();
    cuda.product_abt(n, m, k, memory_.inputs[0].as<float>(), k, parameters_.device_value(weight), k,
                     y, m);
    if (bias < 0) return;
    launch(AddBias{.rows = n,
                   .columns = static_cast<int>(m),
                   .bias = parameters_.device_value(bias),
                   .values = y},
           cuda.stream());
  }

  void backward() override {
    const auto [n, k, m, weight, bias] = arguments_;
    const CudaContext& cuda = context_.cuda();
    const auto* dy = memory_.output_gradient.as<float>();
    cuda.product_atb(m, k, n, dy, m, memory_.inputs[0].as<float>(), k,
                     parameters_.device_gradient(weight), k);
    if (bias >= 0) {
      launch(ColumnSums{.rows = static_cast<int>(n),
                        .columns = static_cast<int>(m),
                        .values = dy,
                        .sums = parameters_.device_gradient(bias)},
             cuda.stream());
    }
    auto* dx = memory_.input_gradients[0].as<float>();
    if (dx == nullptr) return;
    cuda.product_ab(n, k, m, dy, m, parameters_.device_value(weight), k,
                    memory_.uses[0].accumulate ? 1.0F : 0.0F, dx, k);
  }

 private:
  const Context& context_;
  Parameters& parameters_;
  LinearArguments arguments_;
};

}  // namespace

std::unique_ptr<Node> linear_node(const std::string& name, const Program& program,
                                  const LinearArguments& arguments) {
  return std::make_unique<LinearNode>(name, program, arguments);
}

}  // namespace rk::gpu
