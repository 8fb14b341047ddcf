#include "engine/cuda_context.h"
#include "kernels/head_block.h"
#include "kernels/launch.h"
#include "layers/gpu_nodes.h"

namespace rk::gpu {
namespace {

// In float32 throughout: the embedding layer is a thousandth of a network's work.
class LinearNode final : public Node {
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
    const CudaContext& cuda = context_.cuda();
    float* y = memory_.output;
    cuda.product_abt(n_, m_, k_, memory_.inputs[0], k_, parameters_.device_value(weight_), k_, y,
                     m_);
    if (bias_ < 0) return;
    launch(AddBias{.rows = n_,
                   .columns = static_cast<int>(m_),
                   .bias = parameters_.device_value(bias_),
                   .values = y},
           cuda.stream());
  }

  void backward() override {
    const CudaContext& cuda = context_.cuda();
    const float* dy = memory_.output_gradient;
    cuda.product_atb(m_, k_, n_, dy, m_, memory_.inputs[0], k_,
                     parameters_.device_gradient(weight_), k_);
    if (bias_ >= 0) {
      launch(ColumnSums{.rows = static_cast<int>(n_),
                        .columns = static_cast<int>(m_),
                        .values = dy,
                        .sums = parameters_.device_gradient(bias_)},
             cuda.stream());
    }
    const GradientEdge& dx = memory_.input_gradients[0];
    if (dx.data == nullptr) return;
    cuda.product_ab(n_, k_, m_, dy, m_, parameters_.device_value(weight_), k_,
                    dx.accumulate ? 1.0F : 0.0F, dx.data, k_);
  }

 private:
  const Context& context_;
  Parameters& parameters_;
  std::int64_t n_, k_, m_;
  ParameterId weight_, bias_;
  NodeMemory memory_;
};

}  // namespace

std::unique_ptr<Node> linear_node(const std::string& name, const Program& program,
                                  std::int64_t rows, std::int64_t in_features,
                                  std::int64_t out_features, ParameterId weight, ParameterId bias) {
  return std::make_unique<LinearNode>(name, program, rows, in_features, out_features, weight, bias);
}

}  // namespace rk::gpu
