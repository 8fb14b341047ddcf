#include "engine/device/cuda/context.h"
#include "kernels/blocks/head_block.h"
#include "kernels/launch.h"
#include "layers/cuda/nodes.h"

namespace rk::gpu {
namespace {

class L2NormNode final : public Node {
 public:
  L2NormNode(const std::string& name, const Program& program, const Shape& shape, double epsilon)
      : Node(name),
        context_(program.context()),
        rows_(static_cast<int>(shape[0])),
        dim_(static_cast<int>(shape[1])),
        epsilon_(epsilon) {}

  NodeClaims plan(const std::vector<EdgeUse>& /*uses*/) override {
    return {static_cast<std::size_t>(rows_) * sizeof(double), 0};
  }

  void forward() override {
    launch(L2Norm{.rows = rows_,
                  .dim = dim_,
                  .epsilon = epsilon_,
                  .x = memory_.inputs[0].as<float>(),
                  .y = memory_.output.as<float>(),
                  .norms = static_cast<double*>(memory_.saved)},
           context_.cuda().stream());
  }

  void backward() override {
    auto* dx = memory_.input_gradients[0].as<float>();
    if (dx == nullptr) return;
    launch(L2NormGradient{.rows = rows_,
                          .dim = dim_,
                          .epsilon = epsilon_,
                          .x = memory_.inputs[0].as<float>(),
                          .norms = static_cast<const double*>(memory_.saved),
                          .dy = memory_.output_gradient.as<float>(),
                          .dx = dx,
                          .accumulate = memory_.uses[0].accumulate},
           context_.cuda().stream());
  }

 private:
  const Context& context_;
  int rows_, dim_;
  double epsilon_;
};

}  // namespace

std::unique_ptr<Node> l2norm_node(const std::string& name, const Program& program,
                                  const Shape& shape, double epsilon) {
  return std::make_unique<L2NormNode>(name, program, shape, epsilon);
}

}  // namespace rk::gpu
