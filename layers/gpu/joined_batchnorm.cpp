#include "engine/base/error.h"
#include "engine/device/cuda/context.h"
#include "kernels/blocks/batchnorm_join_block.h"
#include "layers/gpu/batch_statistics.h"
#include "layers/gpu/nodes.h"

#include <array>

namespace rk::gpu {
namespace {

// inputs: y and the shortcut, both before their normalisations.
template <class T> class JoinedBatchNorm final : public Node {
 public:
  JoinedBatchNorm(Program& program, TensorId y, const std::string& name, TensorId shortcut,
                  const std::string& shortcut_name, const BatchNormOptions& options)
      : Node(name),
        context_(program.context()),
        parameters_(program.parameters()),
        options_(options),
        rows_(program.shape(y).elements() / program.shape(y)[3]),
        channels_(static_cast<int>(program.shape(y)[3])),
        tensors_{declare_batchnorm(program, name, channels_),
                 declare_batchnorm(program, shortcut_name, channels_)},
        y_(parameters_, tensors_[0], rows_, channels_, summing_producer(program, y)),
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
    y_.carve(saved, workspace);
    s_.carve(saved, workspace);
    signs_ = saved.take<std::uint8_t>(sign_bytes<T>(rows_, channels_));
  }

  void forward() override {
    y_.of_batch(y(), options_, stream());
    s_.of_batch(s(), options_, stream());
    launch(BatchNormJoin<T>{.rows = rows_,
                            .channels = channels_,
                            .y = side(y(), y_),
                            .s = side(s(), s_),
                            .signs = signs_,
                            .z = memory_.output.as<T>()},
           stream());
  }

  void backward() override {
    const BatchNormJoinBackward<T> in{.rows = rows_,
                                      .channels = channels_,
                                      .y = y(),
                                      .s = s(),
                                      .dz = memory_.output_gradient.as<T>(),
                                      .signs = signs_,
                                      .mean = y_.mean(),
                                      .mean_s = s_.mean()};
    launch(
        BatchNormJoinGradientSums<T>{.in = in, .partial = y_.partial(), .partial_s = s_.partial()},
        stream());
    y_.finish_gradient_sums(/*batch=*/true, stream());
    s_.finish_gradient_sums(/*batch=*/true, stream());
    auto* dy = memory_.input_gradients[0].template as<T>();
    auto* ds = memory_.input_gradients[1].template as<T>();
    if (dy == nullptr) return;
    launch(
        BatchNormJoinGradientApply<T>{
            .in = in, .factors = y_.factors(), .factors_s = s_.factors(), .dy = dy, .ds = ds},
        stream());
  }

  void count_forward() override {
    for (const BatchNormTensors& tensors : tensors_) ++parameters_.counter(tensors.count);
  }

 private:
  CudaStream stream() const { return context_.cuda().stream(); }
  const T* y() const { return memory_.inputs[0].template as<T>(); }
  const T* s() const { return memory_.inputs[1].template as<T>(); }
  static JoinedSide<T> side(const T* x, const BatchStatistics<T>& statistics) {
    return {x, statistics.mean(), statistics.scale(), statistics.beta()};
  }

  const Context& context_;
  Parameters& parameters_;
  BatchNormOptions options_;
  std::int64_t rows_;
  int channels_;
  std::array<BatchNormTensors, 2> tensors_;  // of y, of the shortcut
  BatchStatistics<T> y_, s_;
  std::uint8_t* signs_ = nullptr;
};

}  // namespace

std::unique_ptr<Node> joined_batchnorm_node(Program& program, TensorId y, const std::string& name,
                                            TensorId shortcut, const std::string& shortcut_name,
                                            const BatchNormOptions& options) {
  return with_image_type(program.options().precision, [&]<class T>() -> std::unique_ptr<Node> {
    return std::make_unique<JoinedBatchNorm<T>>(program, y, name, shortcut, shortcut_name, options);
  });
}

}  // namespace rk::gpu
