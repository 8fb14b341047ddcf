#include "engine/base/error.h"
#include "kernels/blocks/batchnorm_join_block.h"
#include "layers/gpu/batch_statistics.h"
#include "layers/gpu/nodes.h"

#include <array>

namespace rk::gpu {
namespace {

// inputs: x and the shortcut, both before their normalisations.
template <class T> class JoinedBatchNorm final : public Node {
 public:
  JoinedBatchNorm(Program& program, TensorId x, const std::string& name, TensorId shortcut,
                  const std::string& shortcut_name, const BatchNormOptions& options)
      : Node(name),
        context_(program.context()),
        parameters_(program.parameters()),
        options_(options),
        rows_(program.shape(x).elements() / program.shape(x)[3]),
        channels_(static_cast<int>(program.shape(x)[3])),
        tensors_{declare_batchnorm(program, name, channels_),
                 declare_batchnorm(program, shortcut_name, channels_)},
        x_(parameters_, tensors_[0], rows_, channels_, summing_producer(program, x)),
        s_(parameters_, tensors_[1], rows_, channels_, summing_producer(program, shortcut)) {}

  std::string_view kind() const override { return "batch norm"; }
  std::string implementation() const override {
    return "batch norms by our own kernels, two in front of a sum at once";
  }

  void plan(const std::vector<EdgeUse>& uses) override {
    for (const EdgeUse& use : uses) {
      expect(use.wanted == uses[0].wanted && !use.accumulate,
             "[{}] expected convolutions that nobody else reads", name());
    }
  }

  void carve(Carver& saved, Carver& workspace) override {
    x_.carve(saved, workspace);
    s_.carve(saved, workspace);
    signs_ = saved.take<std::uint8_t>(sign_bytes<T>(rows_, channels_));
  }

  void forward() override {
    x_.of_batch(x(), options_, stream());
    s_.of_batch(s(), options_, stream());
    launch(BatchNormJoin<T>{.rows = rows_,
                            .channels = channels_,
                            .x = side(x(), x_),
                            .s = side(s(), s_),
                            .signs = signs_,
                            .y = memory_.output.as<T>()},
           stream());
  }

  void backward() override {
    const BatchNormJoinBackward<T> in{.rows = rows_,
                                      .channels = channels_,
                                      .x = x(),
                                      .s = s(),
                                      .dy = memory_.output_gradient.as<T>(),
                                      .signs = signs_,
                                      .mean = x_.mean(),
                                      .mean_s = s_.mean()};
    launch(
        BatchNormJoinGradientSums<T>{.in = in, .partial = x_.partial(), .partial_s = s_.partial()},
        stream());
    x_.finish_gradient_sums(/*batch=*/true, stream());
    s_.finish_gradient_sums(/*batch=*/true, stream());
    auto* dx = memory_.input_gradients[0].template as<T>();
    auto* ds = memory_.input_gradients[1].template as<T>();
    if (dx == nullptr) return;
    launch(
        BatchNormJoinGradientApply<T>{
            .in = in, .factors = x_.factors(), .factors_s = s_.factors(), .dx = dx, .ds = ds},
        stream());
  }

  void count_forward() override {
    for (const BatchNormTensors& tensors : tensors_) ++parameters_.counter(tensors.count);
  }

 private:
  CudaStream stream() const { return context_.stream(); }
  const T* x() const { return memory_.inputs[0].template as<T>(); }
  const T* s() const { return memory_.inputs[1].template as<T>(); }
  static JoinedSide<T> side(const T* x, const BatchStatistics<T>& statistics) {
    return {x, statistics.mean(), statistics.scale(), statistics.beta()};
  }

  const Context& context_;
  Parameters& parameters_;
  BatchNormOptions options_;
  std::int64_t rows_;
  int channels_;
  std::array<BatchNormTensors, 2> tensors_;  // of x, of the shortcut
  BatchStatistics<T> x_, s_;
  std::uint8_t* signs_ = nullptr;
};

}  // namespace

std::unique_ptr<Node> joined_batchnorm_node(Program& program, TensorId x, const std::string& name,
                                            TensorId shortcut, const std::string& shortcut_name,
                                            const BatchNormOptions& options) {
  return with_image_type(program.options().precision, [&]<class T>() -> std::unique_ptr<Node> {
    return std::make_unique<JoinedBatchNorm<T>>(program, x, name, shortcut, shortcut_name, options);
  });
}

}  // namespace rk::gpu
