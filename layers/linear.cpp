#include "layers/linear.h"

#include "engine/dispatch.h"
#include "engine/error.h"
#include "engine/gemm.h"
#include "layers/gpu_nodes.h"

#include <algorithm>
#include <cmath>

namespace rk {
namespace {

class LinearNode : public Node {
 public:
  LinearNode(const std::string& name, const Program& program, std::int64_t rows,
             std::int64_t in_features, std::int64_t out_features, ParameterId weight,
             ParameterId bias)
      : Node(name),
        context_(program.context()),
        parameters_(program.parameters()),
        n_(rows),
        k_(in_features),
        m_(out_features),
        weight_(weight),
        bias_(bias) {}

  NodeClaims plan() override { return {}; }
  void bind(const NodeMemory& memory) override { memory_ = memory; }

  void forward() override {
    if (bias_ >= 0) {
      const float* bias = parameters_.value(bias_);
      for (std::int64_t i = 0; i < n_; ++i) std::copy_n(bias, m_, memory_.output + i * m_);
    }
    gemm(context_, Op::kNone, Op::kTranspose, n_, m_, k_, 1.0F, memory_.inputs[0], k_,
         parameters_.value(weight_), k_, bias_ >= 0 ? 1.0F : 0.0F, memory_.output, m_);
  }

  void backward() override {
    const float* dy = memory_.output_gradient;
    gemm(context_, Op::kTranspose, Op::kNone, m_, k_, n_, 1.0F, dy, m_, memory_.inputs[0], k_, 0.0F,
         parameters_.gradient(weight_), k_);
    if (bias_ >= 0) {
      float* d_bias = parameters_.gradient(bias_);
      for (std::int64_t c = 0; c < m_; ++c) {
        double sum = 0;
        for (std::int64_t i = 0; i < n_; ++i) sum += static_cast<double>(dy[i * m_ + c]);
        d_bias[c] = static_cast<float>(sum);
      }
    }
    const GradientEdge& dx = memory_.input_gradients[0];
    if (dx.data == nullptr) return;
    gemm(context_, Op::kNone, Op::kNone, n_, k_, m_, 1.0F, dy, m_, parameters_.value(weight_), k_,
         dx.accumulate ? 1.0F : 0.0F, dx.data, k_);
  }

  // The matrix products are this layer's floor.
  void forward_floor() override { forward(); }
  void backward_floor() override { backward(); }

 private:
  const Context& context_;
  Parameters& parameters_;
  std::int64_t n_, k_, m_;
  ParameterId weight_, bias_;
  NodeMemory memory_;
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
  if constexpr (kHasCuda) {
    if (program.on_gpu()) {
      return program.append(
          gpu::linear_node(name, program, in[0], in[1], options.out_features, weight, bias),
          {input}, output);
    }
  }
  auto node =
      std::make_unique<LinearNode>(name, program, in[0], in[1], options.out_features, weight, bias);
  return program.append(std::move(node), {input}, output);
}

}  // namespace rk
