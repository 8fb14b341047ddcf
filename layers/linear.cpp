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

  std::string_view kind() const override { return "linear layer"; }
  void bind(const NodeMemory& memory) override {
    Node::bind(memory);
    const Tensor &dy = memory.output_gradient, &dx = memory.input_gradients[0];
    const Factor<float> x{memory.inputs[0].as<float>(), n_, k_, k_};
    const Factor<float> w{parameters_.device_value(weight_), m_, k_, k_};
    forward_ = PreparedGemm(context_, {.a = x,
                                       .b = transposed(w),
                                       .c = {memory.output.as<float>(), n_, m_, m_},
                                       .accumulate = bias_ >= 0});
    if (dy.data == nullptr) return;
    const Factor<float> rows{dy.as<float>(), n_, m_, m_};
    weight_gradient_ = PreparedGemm(
        context_,
        {.a = transposed(rows), .b = x, .c = {parameters_.device_gradient(weight_), m_, k_, k_}});
    if (dx.data == nullptr) return;
    input_gradient_ = PreparedGemm(context_, {.a = rows,
                                              .b = w,
                                              .c = {dx.as<float>(), n_, k_, k_},
                                              .accumulate = memory.uses[0].accumulate});
  }

  void forward() override {
    if (bias_ >= 0) {
      launch(context_, FillRows{.rows = static_cast<int>(n_),
                                .columns = static_cast<int>(m_),
                                .row = parameters_.device_value(bias_),
                                .y = memory_.output.as<float>()});
    }
    forward_.run();
  }

  void backward() override {
    weight_gradient_.run();
    if (bias_ >= 0) {
      launch(context_, ColumnSums<float, float>{.rows = static_cast<int>(n_),
                                                .columns = static_cast<int>(m_),
                                                .values = memory_.output_gradient.as<float>(),
                                                .sums = parameters_.device_gradient(bias_)});
    }
    if (memory_.input_gradients[0].data != nullptr) input_gradient_.run();
  }

  // The matrix products alone.
  void forward_floor() override { forward_.run(); }
  void backward_floor() override {
    weight_gradient_.run();
    if (memory_.input_gradients[0].data != nullptr) input_gradient_.run();
  }

 private:
  const Context& context_;
  Parameters& parameters_;
  std::int64_t n_, k_, m_;
  ParameterId weight_, bias_;  // bias -1: none
  PreparedGemm forward_, weight_gradient_, input_gradient_;
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
