#include "layers/linear.h"

#include "engine/base/error.h"
#include "engine/device/gemm.h"
#include "kernels/blocks/head_block.h"
#include "kernels/launch.h"

#include <cmath>

namespace rk {
namespace {

// In float32 throughout: the embedding layer is a thousandth of a network's work.
class LinearNode final : public Node {
 public:
  LinearNode(const std::string& name, Program& program, const Shape& x, std::int64_t out_features,
             ParameterId weight, ParameterId bias)
      : Node(name),
        context_(program.context()),
        parameters_(program.parameters()),
        n_(x[0]),
        k_(x[1]),
        m_(out_features),
        weight_(weight),
        bias_(bias) {}

  // y begins as the bias and the product is added to it.
  void forward() override {
    auto* y = memory_.output.as<float>();
    if (bias_ >= 0) {
      launch(context_, FillRows{.rows = n_,
                                .columns = static_cast<int>(m_),
                                .row = parameters_.device_value(bias_),
                                .values = y});
    }
    gemm(context_, Op::kNone, Op::kTranspose, n_, m_, k_, 1.0F, memory_.inputs[0].as<float>(),
         memory_.inputs[0].row_stride, parameters_.device_value(weight_), k_,
         bias_ >= 0 ? 1.0F : 0.0F, y, m_);
  }

  void backward() override {
    const auto* dy = memory_.output_gradient.as<float>();
    gemm(context_, Op::kTranspose, Op::kNone, m_, k_, n_, 1.0F, dy, m_,
         memory_.inputs[0].as<float>(), memory_.inputs[0].row_stride, 0.0F,
         parameters_.device_gradient(weight_), k_);
    if (bias_ >= 0) {
      launch(context_, ColumnSums{.rows = static_cast<int>(n_),
                                  .columns = static_cast<int>(m_),
                                  .values = dy,
                                  .sums = parameters_.device_gradient(bias_)});
    }
    const Tensor& dx = memory_.input_gradients[0];
    if (dx.data == nullptr) return;
    gemm(context_, Op::kNone, Op::kNone, n_, k_, m_, 1.0F, dy, m_,
         parameters_.device_value(weight_), k_, memory_.uses[0].accumulate ? 1.0F : 0.0F,
         dx.as<float>(), dx.row_stride);
  }

  // The matrix products are this layer's floor.
  void forward_floor() override { forward(); }
  void backward_floor() override { backward(); }

 private:
  const Context& context_;
  Parameters& parameters_;
  std::int64_t n_, k_, m_;
  ParameterId weight_, bias_;  // bias -1: none
};

}  // namespace

TensorId linear(Program& program, TensorId x, const std::string& name,
                const LinearOptions& options) {
  const Shape& in = program.shape(x);
  expect(in.rank() == 2, "[{}] expected rows of features (N, K), got {}", name, in.text());
  const double bound = 1.0 / std::sqrt(static_cast<double>(in[1]));
  const Initial weight_initial = options.orthogonal ? Initial{Initial::Kind::kOrthogonal, 1.0}
                                                    : Initial{Initial::Kind::kUniform, bound};
  const Initial bias_initial = options.orthogonal ? Initial{Initial::Kind::kConstant, 0.0}
                                                  : Initial{Initial::Kind::kUniform, bound};
  Parameters& p = program.parameters();
  const ParameterId weight =
      p.declare(name + ".weight", {options.out_features, in[1]}, weight_initial, options.group);
  const ParameterId bias =
      options.bias ? p.declare(name + ".bias", {options.out_features}, bias_initial, options.group)
                   : -1;
  auto node = std::make_unique<LinearNode>(name, program, in, options.out_features, weight, bias);
  return program.append(std::move(node), {{.tensor = x, .read_in_backward = true, .spaced = true}},
                        {.name = name, .shape = Shape{in[0], options.out_features}});
}

}  // namespace rk
