#include "layers/slice.h"

#include "engine/base/error.h"
#include "kernels/blocks/elementwise_block.h"
#include "kernels/half_element.h"
#include "kernels/launch.h"
#include "layers/concat.h"

namespace rk {
namespace {

// A run of memory in x holds the one in y: the channels of a pixel or, in blocks, of an image; the
// features of a row.
struct SlicedRuns {
  bool images = false;
  std::int64_t runs = 0;
  std::int64_t whole = 0, first = 0, taken = 0;  // elements of a run
  std::int64_t stride(const Tensor& t) const { return images ? t.image_stride : t.row_stride; }
};

template <class T> class SliceNode final : public Node {
 public:
  SliceNode(const std::string& name, const Context& context, const SlicedRuns& runs)
      : Node(name), context_(context), runs_(runs) {}

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

  // Who writes first also writes what is beside the slice.
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

  const std::int64_t block = in.rank() == 4 ? program.width(x) : all;
  const bool in_blocks = block < all && first % block == 0 && count % block == 0;
  if (block < all && !in_blocks) x = reorder(program, x, all, name + ".x");
  const std::int64_t pixels = in_blocks ? in[1] * in[2] : 1;
  const SlicedRuns runs{.images = in_blocks,
                        .runs = in_blocks ? in[0] : in.elements() / all,
                        .whole = pixels * all,
                        .first = pixels * first,
                        .taken = pixels * count};
  const NodeOutput output{.name = name,
                          .shape = shape,
                          .width = in_blocks        ? block
                                   : in.rank() == 4 ? count
                                                    : 0,
                          .dtype = program.dtype(x),
                          .part_at = runs.first};
  auto node = with_type(program.dtype(x), [&]<class T>() -> std::unique_ptr<Node> {
    return std::make_unique<SliceNode<T>>(name, program.context(), runs);
  });
  return program.append(std::move(node), {{.tensor = x, .spaced = true}}, output);
}

}  // namespace rk
