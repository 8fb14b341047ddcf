#include "layers/pool.h"

#include "engine/base/error.h"
#include "engine/base/nearest.h"
#include "engine/tape/layout.h"
#include "kernels/cpu/pool.h"
#include "layers/gpu/nodes.h"

namespace rk {
namespace {

// A pooling over windows, for input and output images in any layout.
class WindowPoolNode : public Node {
 public:
  WindowPoolNode(const std::string& name, const Program& program, const Shape& x, const Shape& y,
                 const pool_cpu::Window& window)
      : Node(name),
        threads_(program.context().threads()),
        window_(window),
        x_shape_(x),
        y_shape_(y) {}
  std::string_view kind() const override { return "pooling"; }
  void choose_layouts(ChannelBlocks& blocks) final {
    x_ = image_layout(x_shape_, blocks.inputs[0]);
    y_ = image_layout(y_shape_, blocks.output);
  }

 protected:
  int threads_;
  pool_cpu::Window window_;
  ImageLayout x_, y_;

 private:
  Shape x_shape_, y_shape_;
};

class MaxPoolNode final : public WindowPoolNode {
 public:
  MaxPoolNode(const std::string& name, const Program& program, const Shape& x, const Shape& y,
              const pool_cpu::Window& window)
      : WindowPoolNode(name, program, x, y, window), gradients_(program.options().gradients) {}
  void carve(Carver& saved, Carver& /*workspace*/) override {
    if (gradients_) choice_ = saved.take<std::uint8_t>(y_.elements());
  }
  void forward() override {
    pool_cpu::max_pool(threads_, x_, y_, window_, memory_.inputs[0].as<float>(), choice_,
                       memory_.output.as<float>(), y_.gap(memory_.output.image_stride));
  }
  void backward() override {
    auto* dx = memory_.input_gradients[0].as<float>();
    if (dx == nullptr) return;
    pool_cpu::max_pool_backward(threads_, x_, y_, window_, choice_,
                                memory_.output_gradient.as<float>(), dx, memory_.uses[0].accumulate,
                                y_.gap(memory_.output_gradient.image_stride));
  }

 private:
  bool gradients_;
  std::uint8_t* choice_ = nullptr;  // which pixel of its window each output is
};

class AveragePoolNode final : public WindowPoolNode {
 public:
  using WindowPoolNode::WindowPoolNode;
  void forward() override {
    pool_cpu::average_pool(threads_, x_, y_, window_, memory_.inputs[0].as<float>(),
                           memory_.output.as<float>(), y_.gap(memory_.output.image_stride));
  }
  void backward() override {
    auto* dx = memory_.input_gradients[0].as<float>();
    if (dx == nullptr) return;
    pool_cpu::average_pool_backward(threads_, x_, y_, window_, memory_.output_gradient.as<float>(),
                                    dx, memory_.uses[0].accumulate,
                                    y_.gap(memory_.output_gradient.image_stride));
  }
};

class GlobalPoolNode : public Node {
 public:
  GlobalPoolNode(const std::string& name, const Program& program, const Shape& x,
                 const GlobalPoolOptions& options)
      : Node(name),
        threads_(program.context().threads()),
        gradients_(program.options().gradients),
        x_shape_(x),
        options_(options) {}
  std::string_view kind() const override { return "pooling"; }
  void choose_layouts(ChannelBlocks& blocks) override {
    x_ = image_layout(x_shape_, blocks.inputs[0]);
  }
  void carve(Carver& saved, Carver& /*workspace*/) override {
    if (!gradients_ || options_.kind != PoolKind::kMax) return;
    best_ = saved.take<std::int64_t>(x_.batch * x_.channels());
  }
  void forward() override {
    pool_cpu::global_pool(threads_, x_, options_.kind, options_.gem, memory_.inputs[0].as<float>(),
                          best_, memory_.output.as<float>());
  }
  void backward() override {
    auto* dx = memory_.input_gradients[0].as<float>();
    if (dx == nullptr) return;
    pool_cpu::global_pool_backward(threads_, x_, options_.kind, options_.gem,
                                   memory_.inputs[0].as<float>(), memory_.output.as<float>(), best_,
                                   memory_.output_gradient.as<float>(), dx,
                                   memory_.uses[0].accumulate);
  }

 private:
  int threads_;
  bool gradients_;
  Shape x_shape_;
  ImageLayout x_;
  GlobalPoolOptions options_;
  std::int64_t* best_ = nullptr;  // the pixel of each maximum
};

std::int64_t pooled_size(std::int64_t size, std::int64_t kernel, std::int64_t stride,
                         std::int64_t padding, bool ceil_mode) {
  const std::int64_t slack = ceil_mode ? stride - 1 : 0;
  std::int64_t out = (size + 2 * padding - kernel + slack) / stride + 1;
  if (ceil_mode && (out - 1) * stride >= size + padding) --out;
  return out;
}

Shape pooled_shape(const Shape& in, const std::string& name, const PoolOptions& options) {
  expect_image(in, name);
  std::array<std::int64_t, 2> out{};
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const std::int64_t size = in[static_cast<int>(axis) + 1];
    expect(size + 2 * options.padding[axis] >= options.kernel[axis] &&
               2 * options.padding[axis] <= options.kernel[axis],
           "[{}] expected an image of at least the window, and padding of at most half of it",
           name);
    out[axis] = pooled_size(size, options.kernel[axis], options.stride[axis], options.padding[axis],
                            options.ceil_mode);
  }
  return {in[0], out[0], out[1], in[3]};
}

pool_cpu::Window window_of(const PoolOptions& options) {
  return {options.kernel, options.stride, options.padding};
}

}  // namespace

TensorId max_pool(Program& program, TensorId x, const std::string& name,
                  const PoolOptions& options) {
  expect(options.kernel[0] * options.kernel[1] < 255,
         "[{}] expected a window of at most 254 pixels", name);
  const Shape& in = program.shape(x);
  const Shape shape = pooled_shape(in, name, options);
  const NodeOutput output{
      .name = name, .shape = shape, .dtype = program.dtype(x), .may_be_strided = true};
  if (program.on_gpu()) {
    return program.append(gpu::max_pool_node(name, program, in, shape, options),
                          {{.tensor = x, .masks_gradient = true}}, output);
  }
  auto node = std::make_unique<MaxPoolNode>(name, program, in, shape, window_of(options));
  return program.append(std::move(node), {{.tensor = x}}, output);
}

TensorId average_pool(Program& program, TensorId x, const std::string& name,
                      const PoolOptions& options) {
  const Shape& in = program.shape(x);
  const Shape shape = pooled_shape(in, name, options);
  const NodeOutput output{
      .name = name, .shape = shape, .dtype = program.dtype(x), .may_be_strided = true};
  if (program.on_gpu()) {
    return program.append(gpu::average_pool_node(name, program, in, shape, options),
                          {{.tensor = x}}, output);
  }
  auto node = std::make_unique<AveragePoolNode>(name, program, in, shape, window_of(options));
  return program.append(std::move(node), {{.tensor = x}}, output);
}

PoolKind parse_global_pool(const std::string& name) {
  if (name == "avg") return PoolKind::kAverage;
  if (name == "max") return PoolKind::kMax;
  if (name == "gem") return PoolKind::kGem;
  fail<UsageError>("unknown pooling '{}'; {}", name, suggestion(name, {"avg", "max", "gem"}));
}

TensorId global_pool(Program& program, TensorId x, const std::string& name,
                     const GlobalPoolOptions& options) {
  const Shape& in = program.shape(x);
  expect_image(in, name);
  const bool gem = options.kind == PoolKind::kGem;
  const NodeInput input{.tensor = x, .read_in_backward = gem};
  const NodeOutput output{.name = name, .shape = Shape{in[0], in[3]}, .read_in_backward = gem};
  if (program.on_gpu()) {
    return program.append(gpu::global_pool_node(name, program, in, options), {input}, output);
  }
  auto node = std::make_unique<GlobalPoolNode>(name, program, in, options);
  return program.append(std::move(node), {input}, output);
}

}  // namespace rk
