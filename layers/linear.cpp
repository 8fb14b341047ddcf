#include "layers/linear.h"

#include "engine/base/error.h"
#include "engine/device/gemm.h"
#include "kernels/blocks/head_block.h"
#include "kernels/half_element.h"
#include "kernels/launch.h"
#include "layers/gpu/weights.h"

#include <cmath>
#include <type_traits>

namespace rk {
namespace {

// Rows have the type T, and so have copies of weight and bias that are made before every forward
// pass (layers/gpu/weights.h); the parameters' gradients are float32.
template <class T> class LinearNode final : public Node {
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
        bias_(bias),
        casts_(std::is_same_v<T, float> ? nullptr : &gpu::cast_weights<T>(program)) {}

  void plan(const std::vector<EdgeUse>& /*uses*/) override {
    if (casts_ == nullptr) return;
    cast_weight_ = casts_->add(
        {.shape = dense(m_, k_), .weight = parameters_.device_value(weight_)}, /*used=*/true);
    if (bias_ >= 0) {
      cast_bias_ = casts_->add({.shape = dense(1, m_), .weight = parameters_.device_value(bias_)},
                               /*used=*/true);
    }
  }

  void bind(const NodeMemory& memory) override {
    Node::bind(memory);
    const Tensor &x = memory.inputs[0], &dx = memory.input_gradients[0];
    const Tensor &y = memory.output, &dy = memory.output_gradient;
    const T* w = computed(weight_, cast_weight_);
    const T* b = bias_ >= 0 ? computed(bias_, cast_bias_) : nullptr;
    const auto matrix = [this](const Tensor& rows, std::int64_t columns) {
      return Matrix(rows.as<T>(), n_, columns, rows.row_stride);
    };
    const Factor weights(w, m_, k_, k_);
    forward_ = PreparedGemm(
        context_, {.a = matrix(x, k_), .b = transposed(weights), .c = matrix(y, m_), .bias = b});
    if (dy.data == nullptr) return;
    weight_gradient_ =
        PreparedGemm(context_, {.a = transposed(matrix(dy, m_)),
                                .b = matrix(x, k_),
                                .c = {parameters_.device_gradient(weight_), m_, k_, k_}});
    if (dx.data == nullptr) return;
    input_gradient_ = PreparedGemm(context_, {.a = matrix(dy, m_),
                                              .b = weights,
                                              .c = matrix(dx, k_),
                                              .accumulate = memory.uses[0].accumulate});
  }

  void forward() override { forward_.run(); }

  void backward() override {
    weight_gradient_.run();
    if (bias_ >= 0) {
      launch(context_, ColumnSums<T>{.rows = static_cast<int>(n_),
                                     .columns = static_cast<int>(m_),
                                     .values = memory_.output_gradient.as<T>(),
                                     .sums = parameters_.device_gradient(bias_)});
    }
    if (memory_.input_gradients[0].data != nullptr) input_gradient_.run();
  }

  // The matrix products are this layer's floor.
  void forward_floor() override { forward(); }
  void backward_floor() override { backward(); }

 private:
  static FilterShape dense(std::int64_t outputs, std::int64_t inputs) {
    const auto columns = static_cast<int>(inputs);
    return {.outputs = static_cast<int>(outputs),
            .taps = 1,
            .inputs = columns,
            .padded_inputs = columns};
  }
  // A parameter in the type that the products read.
  const T* computed(ParameterId id, int cast) const {
    if constexpr (std::is_same_v<T, float>) {
      return parameters_.device_value(id);
    } else {
      return (*casts_)[cast].prepared;
    }
  }

  const Context& context_;
  Parameters& parameters_;
  std::int64_t n_, k_, m_;
  ParameterId weight_, bias_;   // bias -1: none
  gpu::CastWeights<T>* casts_;  // null: the products read the parameters themselves
  int cast_weight_ = -1, cast_bias_ = -1;
  PreparedGemm forward_, weight_gradient_, input_gradient_;
};

}  // namespace

TensorId linear(Program& program, TensorId x, const std::string& name,
                const LinearOptions& options) {
  const Shape in = program.shape(x);
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
  const DType type = program.dtype(x);
  auto node = with_type(type, [&]<class T>() -> std::unique_ptr<Node> {
    return std::make_unique<LinearNode<T>>(name, program, in, options.out_features, weight, bias);
  });
  return program.append(std::move(node), {{.tensor = x, .read_in_backward = true}},
                        {.name = name, .shape = Shape{in[0], options.out_features}, .dtype = type});
}

}  // namespace rk
