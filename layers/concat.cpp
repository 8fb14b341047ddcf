#include "layers/concat.h"

#include "engine/base/error.h"
#include "engine/base/parallel.h"
#include "engine/tape/layout.h"
#include "kernels/cpu/elementwise_cpu.h"
#include "layers/gpu/nodes.h"

#include <algorithm>

namespace rk {
namespace {

// In blocks, the channels of one image are a run of memory; in NHWC, those of one pixel.
class ConcatNode : public Node {
 public:
  ConcatNode(const std::string& name, const Program& program)
      : Node(name), threads_(program.context().threads()) {}

  void forward() override {
    auto* y = memory_.output.as<float>();
    for (const Tensor& x : memory_.inputs) {
      const Run run = run_of(x);
      if (x.data != y) {  // else it was written there
        elementwise_cpu::copy_runs(threads_, {run.count, run.length, run.length, run.whole},
                                   x.as<float>(), y, false);
      }
      y += run.length;
    }
  }

  void backward() override {
    const auto* dy = memory_.output_gradient.as<float>();
    for (std::size_t i = 0; i < memory_.inputs.size(); ++i) {
      const Run run = run_of(memory_.inputs[i]);
      auto* dx = memory_.input_gradients[i].as<float>();
      if (dx != nullptr && dx != dy) {
        elementwise_cpu::copy_runs(threads_, {run.count, run.length, run.whole, run.length}, dy, dx,
                                   memory_.uses[i].accumulate);
      }
      dy += run.length;
    }
  }

 private:
  struct Run {
    std::int64_t count, length, whole;
  };
  Run run_of(const Tensor& x) const {
    const Shape &in = x.shape, &out = memory_.output.shape;
    if (memory_.output.row_stride == out[3]) return {in[0] * in[1] * in[2], in[3], out[3]};
    const std::int64_t pixels = in[1] * in[2];
    return {in[0], pixels * in[3], pixels * out[3]};
  }

  int threads_;
};

class ReorderNode : public Node {
 public:
  ReorderNode(const std::string& name, const Program& program, const ImageLayout& x,
              const ImageLayout& y)
      : Node(name), threads_(program.context().threads()), x_(x), y_(y) {}

  void forward() override {
    copy(x_, memory_.inputs[0].as<float>(), y_, memory_.output.as<float>(), false);
  }
  void backward() override {
    auto* dx = memory_.input_gradients[0].as<float>();
    if (dx == nullptr) return;
    copy(y_, memory_.output_gradient.as<float>(), x_, dx, memory_.uses[0].accumulate);
  }

 private:
  void copy(const ImageLayout& from, const float* x, const ImageLayout& to, float* y,
            bool accumulate) const {
    const auto at = [](const ImageLayout& layout, std::int64_t image, std::int64_t pixel,
                       std::int64_t channel) {
      return (image * layout.groups + channel / layout.width) * layout.plane() +
             pixel * layout.width + channel % layout.width;
    };
    parallel_for(threads_, from.batch, [&](std::int64_t n, int) {
      for (std::int64_t p = 0; p < from.rows(); ++p) {
        for (std::int64_t c = 0; c < from.channels(); ++c) {
          const float value = x[at(from, n, p, c)];
          float& place = y[at(to, n, p, c)];
          place = accumulate ? place + value : value;
        }
      }
    });
  }

  int threads_;
  ImageLayout x_, y_;
};

}  // namespace

TensorId reorder(Program& program, TensorId x, std::int64_t width, const std::string& name) {
  if (program.width(x) == width) return x;
  const Shape& shape = program.shape(x);
  auto node = std::make_unique<ReorderNode>(name, program, image_layout(shape, program.width(x)),
                                            image_layout(shape, width));
  return program.append(std::move(node), {{.tensor = x}},
                        {.name = name, .shape = shape, .width = width});
}

TensorId concat(Program& program, const std::vector<TensorId>& inputs, const std::string& name) {
  expect(!inputs.empty(), "[{}] expected at least one tensor", name);
  Shape shape = program.shape(inputs[0]);
  expect(shape.rank() == 4, "[{}] expected an image tensor (N, H, W, C), got {}", name,
         shape.text());
  std::int64_t channels = 0;
  const std::int64_t block = program.on_gpu() ? 0 : convolution_width();
  bool blocked = block > 0;
  for (const TensorId input : inputs) {
    const Shape& s = program.shape(input);
    expect(s.rank() == 4 && s[0] == shape[0] && s[1] == shape[1] && s[2] == shape[2],
           "[{}] expected images of {} and any channels, got {}", name, shape.text(), s.text());
    channels += s[3];
    blocked = blocked && s[3] % block == 0;
  }
  shape = {shape[0], shape[1], shape[2], channels};
  const NodeOutput output{.name = name,
                          .shape = shape,
                          .width = blocked ? block : channels,
                          .dtype = program.dtype(inputs[0])};
  std::int64_t first = 0;
  std::vector<NodeInput> edges;
  edges.reserve(inputs.size());
  for (const TensorId input : inputs) {
    const std::int64_t width = blocked ? block : program.shape(input)[3];
    const std::string reordered = fmt::format("{}.{}", name, edges.size());
    edges.push_back({.tensor = reorder(program, input, width, reordered)});
    // In blocks an image's channels follow each other, so that a producer can write them in place.
    if (blocked) edges.back().joined_at = first;
    first += program.shape(input).elements() / shape[0];
  }
  if (program.on_gpu()) {
    return program.append(gpu::concat_node(name, program), edges, output);
  }
  return program.append(std::make_unique<ConcatNode>(name, program), edges, output);
}

}  // namespace rk
