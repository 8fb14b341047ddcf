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
    const Tensor& y = memory_.output;
    auto* to = y.as<float>();
    for (const Tensor& x : memory_.inputs) {
      const std::int64_t length = run_length(x);
      if (x.data != to) {  // else it was written there
        elementwise_cpu::copy_runs(threads_, {x.elements() / length, length, stride(x), stride(y)},
                                   x.as<float>(), to, false);
      }
      to += length;
    }
  }

  void backward() override {
    const Tensor& dy = memory_.output_gradient;
    const auto* from = dy.as<float>();
    for (std::size_t i = 0; i < memory_.inputs.size(); ++i) {
      const Tensor& dx = memory_.input_gradients[i];
      const std::int64_t length = run_length(dx);
      if (dx.data != nullptr && dx.data != from) {
        elementwise_cpu::copy_runs(threads_,
                                   {dx.elements() / length, length, stride(dy), stride(dx)}, from,
                                   dx.as<float>(), memory_.uses[i].accumulate);
      }
      from += length;
    }
  }

 private:
  bool in_blocks() const { return memory_.output.row_stride != memory_.output.shape[3]; }
  std::int64_t run_length(const Tensor& x) const {
    return in_blocks() ? x.elements() / x.shape[0] : x.shape[3];
  }
  std::int64_t stride(const Tensor& t) const { return in_blocks() ? t.image_stride : t.row_stride; }

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

// Are the inputs, one behind the other along the channels, ranges that begin and end on 16 bytes?
bool starts_packs(const Program& program, const std::vector<TensorId>& inputs) {
  return std::ranges::all_of(inputs, [&](TensorId x) {
    return program.shape(x)[3] * static_cast<std::int64_t>(size_of(program.dtype(x))) % 16 == 0;
  });
}

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
    const Shape& s = program.shape(input);
    const std::int64_t width = blocked ? block : s[3];
    const std::string reordered = fmt::format("{}.{}", name, edges.size());
    edges.push_back({.tensor = reorder(program, input, width, reordered)});
    NodeInput& edge = edges.back();
    // One block alone has rows apart where it is a range of channels: those are not images.
    edge.spaced = !blocked || block < s[3];
    // In blocks an image's channels follow each other, so that a producer can write them in place.
    // On a GPU one can write a pixel's where all rows start as its loads and stores want them.
    if (blocked) edge.joined_at = first * s[1] * s[2];
    if (program.on_gpu() && starts_packs(program, inputs)) edge.joined_at = first;
    first += s[3];
  }
  if (program.on_gpu()) {
    return program.append(gpu::concat_node(name, program), edges, output);
  }
  return program.append(std::make_unique<ConcatNode>(name, program), edges, output);
}

}  // namespace rk
