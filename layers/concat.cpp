#include "layers/concat.h"

#include "engine/base/error.h"
#include "kernels/cpu/elementwise.h"
#include "layers/gpu/nodes.h"
#include "layers/onednn/convolution_block.h"

#include <algorithm>
#include <utility>

namespace rk {
namespace {

// A contiguous run holds the channels of one image if channels are in blocks, of one pixel in NHWC.
class ConcatNode : public Node {
 public:
  ConcatNode(const std::string& name, const Program& program, ChannelBlocks blocks)
      : Node(name), threads_(program.context().threads()), blocks_(std::move(blocks)) {}

  std::string_view kind() const override { return "concatenation"; }
  void choose_layouts(ChannelBlocks& blocks) override { blocks = blocks_; }

  void forward() override {
    const Tensor& y = memory_.output;
    auto* to = y.as<float>();
    for (const Tensor& x : memory_.inputs) {
      const std::int64_t length = run_length(x);
      if (x.data != to) {  // else it was written in place
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
  ChannelBlocks blocks_;
};

// Whether all inputs, concatenated along the channels, start and end at multiples of 16 bytes.
bool starts_packs(const Program& program, const std::vector<TensorId>& inputs) {
  return std::ranges::all_of(inputs, [&](TensorId x) {
    return program.shape(x)[3] * static_cast<std::int64_t>(size_of(program.dtype(x))) % 16 == 0;
  });
}

}  // namespace

TensorId concat(Program& program, const std::vector<TensorId>& inputs, const std::string& name) {
  expect(!inputs.empty(), "[{}] expected at least one tensor", name);
  Shape shape = program.shape(inputs[0]);
  expect_image(shape, name);
  std::int64_t channels = 0;
  const std::int64_t block = program.on_gpu() ? 0 : convolution_block();
  bool blocked = block > 0;
  for (const TensorId input : inputs) {
    const Shape& s = program.shape(input);
    expect(s.rank() == 4 && s[0] == shape[0] && s[1] == shape[1] && s[2] == shape[2],
           "[{}] expected images of {} and any channels, got {}", name, shape.text(), s.text());
    channels += s[3];
    blocked = blocked && s[3] % block == 0;
  }
  shape = {shape[0], shape[1], shape[2], channels};
  const NodeOutput output{.name = name, .shape = shape, .dtype = program.dtype(inputs[0])};
  ChannelBlocks blocks;
  blocks.output = blocked ? block : channels;
  std::int64_t first = 0;
  std::vector<NodeInput> edges;
  edges.reserve(inputs.size());
  for (const TensorId input : inputs) {
    const Shape& s = program.shape(input);
    NodeInput edge{.tensor = input};
    // In blocks, an image's channels are contiguous, so a producer can write them in place. On a
    // GPU a producer can write a pixel's channels in place if all rows are aligned for its loads
    // and stores.
    if (blocked || (program.on_gpu() && starts_packs(program, inputs))) edge.joined_at = first;
    edges.push_back(edge);
    blocks.inputs.push_back(blocked ? block : s[3]);
    first += s[3];
  }
  if (program.on_gpu()) {
    return program.append(gpu::concat_node(name, program), edges, output);
  }
  auto node = std::make_unique<ConcatNode>(name, program, std::move(blocks));
  return program.append(std::move(node), edges, output);
}

}  // namespace rk
