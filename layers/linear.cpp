#include "layers/linear.h"

#include "engine/base/error.h"
#include "engine/device/gemm.h"
#include "kernels/blocks/matrix_block.h"
#include "kernels/launch.h"

#include <cmath>
#include <memory>

namespace rk {
namespace {

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

  void forward() override {
    auto* y = memory_.output.as<float>();
    if (bias_ >= 0) {
      launch(context_, FillRows{.rows = static_cast<int>(n_),
                                .columns = static_cast<int>(m_),
                                .row = parameters_.device_value(bias_),
                                .y = y});
    }
    gemm(context_,
         {.a = x(), .b = transposed(weight()), .c = {y, n_, m_, m_}, .accumulate = bias_ >= 0});
  }

  void backward() override {
    gemm(
        context_,
        {.a = transposed(dy()), .b = x(), .c = {parameters_.device_gradient(weight_), m_, k_, k_}});
    if (bias_ >= 0) {
      launch(context_, ColumnSums<float, float>{.rows = static_cast<int>(n_),
                                                .columns = static_cast<int>(m_),
                                                .values = dy().data,
                                                .sums = parameters_.device_gradient(bias_)});
    }
    const Tensor& dx = memory_.input_gradients[0];
    if (dx.data == nullptr) return;
    gemm(context_, {.a = dy(),
                    .b = weight(),
                    .c = {dx.as<float>(), n_, k_, k_},
                    .accumulate = memory_.uses[0].accumulate});
  }

  // The matrix products are this layer's floor.
  void forward_floor() override { forward(); }
  void backward_floor() override { backward(); }

 private:
  Factor<float> x() const { return {memory_.inputs[0].as<float>(), n_, k_, k_}; }
  Factor<float> dy() const { return {memory_.output_gradient.as<float>(), n_, m_, m_}; }
  Factor<float> weight() const { return {parameters_.device_value(weight_), m_, k_, k_}; }

  const Context& context_;
  Parameters& parameters_;
  std::int64_t n_, k_, m_;
  ParameterId weight_, bias_;  // bias -1: none
};

}  // namespace

TensorId linear(Program& program, TensorId x, const std::string& name,
                const LinearOptions& options) {
  const Shape in = program.shape(x);
  expect(in.rank() == 2 && program.dtype(x) == DType::kFloat32,
         "[{}] expected rows of float32 features (N, K), got {}", name, in.text());
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
  return program.append(
      std::make_unique<LinearNode>(name, program, in, options.out_features, weight, bias),
      {{.tensor = x, .read_in_backward = true}},
      {.name = name, .shape = Shape{in[0], options.out_features}});
}

}  // namespace rk
