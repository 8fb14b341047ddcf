#include "layers/l2norm.h"

#include "engine/base/error.h"
#include "engine/base/parallel.h"
#include "engine/device/dispatch.h"
#include "layers/cuda/nodes.h"

#include <algorithm>
#include <cmath>

namespace rk {
namespace {

class L2NormNode : public Node {
 public:
  L2NormNode(const std::string& name, const Program& program, const Shape& shape, double epsilon)
      : Node(name),
        threads_(program.context().threads()),
        rows_(shape[0]),
        dim_(shape[1]),
        epsilon_(epsilon) {}

  NodeClaims plan(const std::vector<EdgeUse>& /*uses*/) override {
    return {static_cast<std::size_t>(rows_) * sizeof(double), 0};
  }
  void bind(const NodeMemory& memory) override {
    Node::bind(memory);
    norms_ = static_cast<double*>(memory.saved);
  }

  void forward() override {
    parallel_for(threads_, rows_, [&](std::int64_t r, int) {
      const float* x = memory_.inputs[0].as<float>() + r * dim_;
      float* y = memory_.output.as<float>() + r * dim_;
      double squares = 0;
#pragma omp simd reduction(+ : squares)
      for (std::int64_t d = 0; d < dim_; ++d) {
        squares += static_cast<double>(x[d]) * static_cast<double>(x[d]);
      }
      norms_[r] = std::sqrt(squares);
      const double length = std::max(norms_[r], epsilon_);
      for (std::int64_t d = 0; d < dim_; ++d) {
        y[d] = static_cast<float>(static_cast<double>(x[d]) / length);
      }
    });
  }

  void backward() override {
    auto* gradient = memory_.input_gradients[0].as<float>();
    if (gradient == nullptr) return;
    const bool accumulate = memory_.uses[0].accumulate;
    parallel_for(threads_, rows_, [&](std::int64_t r, int) {
      const float* x = memory_.inputs[0].as<float>() + r * dim_;
      const float* dy = memory_.output_gradient.as<float>() + r * dim_;
      float* dx = gradient + r * dim_;
      const bool constant = norms_[r] < epsilon_;
      const double length = std::max(norms_[r], epsilon_);
      double dot = 0;
#pragma omp simd reduction(+ : dot)
      for (std::int64_t d = 0; d < dim_; ++d) {
        dot += static_cast<double>(x[d]) * static_cast<double>(dy[d]);
      }
      const double along = constant ? 0.0 : dot / (length * length);
      for (std::int64_t d = 0; d < dim_; ++d) {
        const double g = (static_cast<double>(dy[d]) - along * static_cast<double>(x[d])) / length;
        dx[d] = accumulate ? dx[d] + static_cast<float>(g) : static_cast<float>(g);
      }
    });
  }

 private:
  int threads_;
  std::int64_t rows_, dim_;
  double epsilon_;
  double* norms_ = nullptr;
};

}  // namespace

TensorId l2norm(Program& program, TensorId x, const std::string& name, double epsilon) {
  const Shape& in = program.shape(x);
  expect(in.rank() == 2, "[{}] expected rows (N, D), got {}", name, in.text());
  const NodeInput input{.tensor = x, .read_in_backward = true, .gradient_in_place = true};
  const NodeOutput output{.name = name, .shape = in};
  if constexpr (kHasCuda) {
    if (program.on_gpu()) {
      return program.append(gpu::l2norm_node(name, program, in, epsilon), {input}, output);
    }
  }
  return program.append(std::make_unique<L2NormNode>(name, program, in, epsilon), {input}, output);
}

}  // namespace rk
