#include "layers/slice.h"

#include "engine/base/error.h"
#include "kernels/blocks/elementwise_block.h"
#include "kernels/half_element.h"
#include "kernels/launch.h"

namespace rk {
namespace {

// Runs of contiguous memory in x that contain those of y: the channels of a pixel or, in blocks, of
// an image; the features of a row.
struct SlicedRuns {
  bool images = false;
  std::int64_t runs = 0;
  std::int64_t whole = 0, first = 0, taken = 0;  // elements of a run
  std::int64_t stride(const Tensor& t) const { return images ? t.image_stride : t.row_stride; }
};

template <class T> class SliceNode final : public Node {
 public:
  SliceNode(const std::string& name, const Context& context, const Shape& x, std::int64_t first,
            std::int64_t count)
      : Node(name), context_(context), x_(x), first_(first), count_(count) {}

  // Keeps the blocks of x if whole blocks are taken.
  void choose_layouts(ChannelBlocks& blocks) override {
    const std::int64_t all = x_[x_.rank() - 1];
    const std::int64_t block = x_.rank() == 4 ? blocks.inputs[0] : all;
    const bool in_blocks = block < all && first_ % block == 0 && count_ % block == 0;
    if (x_.rank() == 4) {
      blocks.inputs[0] = in_blocks ? block : all;
      blocks.output = in_blocks ? block : count_;
    }
    const std::int64_t pixels = in_blocks ? x_[1] * x_[2] : 1;
    runs_ = {.images = in_blocks,
             .runs = in_blocks ? x_[0] : x_.elements() / all,
             .whole = pixels * all,
             .first = pixels * first_,
             .taken = pixels * count_};
  }

  void forward() override {
    const Tensor& y = memory_.output;
    const T* from = memory_.inputs[0].template as<T>() + runs_.first;
    if (from == y.data) return;
    launch(context_, CopyChannels<T>{.rows = runs_.runs,
                                     .channels = static_cast<int>(runs_.taken),
                                     .x = from,
                                     .x_stride = runs_.stride(memory_.inputs[0]),
                                     .y = y.as<T>(),
                                     .y_stride = runs_.stride(y)});
  }

  // The first writer of dx also writes the zeros beside the slice.
  void backward() override {
    const Tensor &dx = memory_.input_gradients[0], &dy = memory_.output_gradient;
    if (dx.data == nullptr || dx.as<T>() + runs_.first == dy.data) return;
    if (memory_.uses[0].accumulate) {
      launch(context_, CopyChannels<T>{.rows = runs_.runs,
                                       .channels = static_cast<int>(runs_.taken),
                                       .x = dy.as<T>(),
                                       .x_stride = runs_.stride(dy),
                                       .y = dx.as<T>() + runs_.first,
                                       .y_stride = runs_.stride(dx),
                                       .accumulate = true});
      return;
    }
    launch(context_, PadChannels<T>{.rows = runs_.runs,
                                    .channels = static_cast<int>(runs_.whole),
                                    .first = static_cast<int>(runs_.first),
                                    .taken = static_cast<int>(runs_.taken),
                                    .x = dy.as<T>(),
                                    .x_stride = runs_.stride(dy),
                                    .y = dx.as<T>(),
                                    .y_stride = runs_.stride(dx)});
  }

 private:
  const Context& context_;
  Shape x_;
  std::int64_t first_, count_;
  SlicedRuns runs_;
};

}  // namespace

TensorId slice(Program& program, TensorId x, std::int64_t first, std::int64_t count,
               const std::string& name) {
  Shape shape;
  const Shape in = program.shape(x);
  expect(in.rank() >= 2, "[{}] expected rows of features or channels, got {}", name, in.text());
  const std::int64_t all = in[in.rank() - 1];
  expect(first >= 0 && count > 0 && first + count <= all,
         "[{}] expected a range of {}'s last dimension, got {} from {}", name, in.text(), count,
         first);
  for (int axis = 0; axis < in.rank() - 1; ++axis) shape.append(in[axis]);
  shape.append(count);

  const NodeOutput output{
      .name = name, .shape = shape, .dtype = program.dtype(x), .part_at = first};
  auto node = with_type(program.dtype(x), [&]<class T>() -> std::unique_ptr<Node> {
    return std::make_unique<SliceNode<T>>(name, program.context(), in, first, count);
  });
  return program.append(std::move(node), {{.tensor = x, .spaced = true}}, output);
}

}  // namespace rk
