#include "layers/l2norm.h"

#include "engine/base/error.h"
#include "kernels/blocks/l2norm_block.h"
#include "kernels/launch.h"

namespace rk {
namespace {

class L2NormNode final : public Node {
 public:
  L2NormNode(const std::string& name, const Context& context, const Shape& shape, double epsilon)
      : Node(name),
        context_(context),
        rows_(static_cast<int>(shape[0])),
        dim_(static_cast<int>(shape[1])),
        epsilon_(epsilon) {}

  std::string_view kind() const override { return "unit length"; }
  void carve(Carver& saved, Carver& /*workspace*/) override { norms_ = saved.take<double>(rows_); }

  void forward() override {
    launch(context_, L2Norm{.rows = rows_,
                            .dim = dim_,
                            .epsilon = epsilon_,
                            .x = memory_.inputs[0].as<float>(),
                            .y = memory_.output.as<float>(),
                            .norms = norms_});
  }

  void backward() override {
    const Tensor& dx = memory_.input_gradients[0];
    if (dx.data == nullptr) return;
    launch(context_, L2NormGradient{.rows = rows_,
                                    .dim = dim_,
                                    .epsilon = epsilon_,
                                    .x = memory_.inputs[0].as<float>(),
                                    .norms = norms_,
                                    .dy = memory_.output_gradient.as<float>(),
                                    .dx = dx.as<float>(),
                                    .accumulate = memory_.uses[0].accumulate});
  }

 private:
  const Context& context_;
  int rows_, dim_;
  double epsilon_;
  double* norms_ = nullptr;  // of the rows
};

}  // namespace

TensorId l2norm(Program& program, TensorId x, const std::string& name, double epsilon) {
  const Shape& in = program.shape(x);
  expect(in.rank() == 2, "[{}] expected rows (N, D), got {}", name, in.text());
  const NodeInput input{.tensor = x, .read_in_backward = true, .gradient_in_place = true};
  return program.append(std::make_unique<L2NormNode>(name, program.context(), in, epsilon), {input},
                        {.name = name, .shape = in});
}

}  // namespace rk
