#include "layers/linear.h"

#include "engine/base/error.h"
#include "engine/device/dispatch.h"
#include "engine/device/gemm.h"
#include "layers/cuda/nodes.h"

#include <algorithm>
#include <cmath>

namespace rk {
namespace {

class LinearNode : public Node {
 public:
  LinearNode(const std::string& name, const Program& program, const LinearArguments& arguments)
      : Node(name),
        context_(program.context()),
        parameters_(program.parameters()),
        arguments_(arguments) {}

  void forward() override {
    const auto [n, k, m, weight, bias] = arguments_;
    auto* y = memory_.output.as<float>();
    for (std::int64_t i = 0; bias >= 0 && i < n; ++i) {
      std::copy_n(parameters_.value(bias), m, y + i * m);
    }
    gemm(context_, Op::kNone, Op::kTranspose, n, m, k, 1.0F, memory_.inputs[0].as<float>(), k,
         parameters_.value(weight), k, bias >= 0 ? 1.0F : 0.0F, y, m);
  }

  void backward() override {
    const auto [n, k, m, weight, bias] = arguments_;
    const auto* dy = memory_.output_gradient.as<float>();
    gemm(context_, Op::kTranspose, Op::kNone, m, k, n, 1.0F, dy, m, memory_.inputs[0].as<float>(),
         k, 0.0F, parameters_.gradient(weight), k);
    if (bias >= 0) {
      float* d_bias = parameters_.gradient(bias);
      for (std::int64_t c = 0; c < m; ++c) {
        double sum = 0;
        for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(dy[i * m + c]);
        d_bias[c] = static_cast<float>(sum);
      }
    }
    auto* dx = memory_.input_gradients[0].as<float>();
    if (dx == nullptr) return;
    gemm(context_, Op::kNone, Op::kNone, n, k, m, 1.0F, dy, m, parameters_.value(weight), k,
         memory_.uses[0].accumulate ? 1.0F : 0.0F, dx, k);
  }

  // The matrix products are this layer's floor.
  void forward_floor() override { forward(); }
  void backward_floor() override { backward(); }

 private:
  const Context& context_;
  Parameters& parameters_;
  LinearArguments arguments_;
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
  const NodeInput input{.tensor = x, .read_in_backward = true};
  const NodeOutput output{.name = name, .shape = Shape{in[0], options.out_features}};
  const LinearArguments arguments{in[0], in[1], options.out_features, weight, bias};
  if constexpr (kHasCuda) {
    if (program.on_gpu()) {
      return program.append(gpu::linear_node(name, program, arguments), {input}, output);
    }
  }
  return program.append(std::make_unique<LinearNode>(name, program, arguments), {input}, output);
}

}  // namespace rk
