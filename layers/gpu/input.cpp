#include "layers/gpu/input.h"

#include "engine/base/colours.h"
#include "engine/base/error.h"
#include "engine/device/precision.h"
#include "kernels/blocks/input_block.h"
#include "kernels/launch.h"

namespace rk {

GpuInput::GpuInput(const Program& program, TensorId input, std::span<const float> table,
                   std::int64_t images)
    : program_(program), input_(input), table_(program.context().copy_of(table)) {
  expect(table.size() == static_cast<std::size_t>(kColours) * 256,
         "[input] expected 256 numbers for each of {} colours, got {}", kColours, table.size());
  const Shape& shape = program.image_shape(input);
  upload_ = DeviceUpload(program.context().cuda(),
                         static_cast<std::size_t>(images * shape[1] * shape[2] * kColours));
}

void GpuInput::stage(std::span<const std::uint8_t> pixels) { upload_.stage(std::as_bytes(pixels)); }

void GpuInput::take() { upload_.take(); }

void GpuInput::take_back() { upload_.take_back(); }

void GpuInput::fill(std::int64_t first) const {
  const Shape &shape = program_.image_shape(input_), &stored = program_.shape(input_);
  expect(shape[1] == shape[2], "[input] expected square images, got {}", shape.text());
  const auto side = static_cast<int>(shape[1]);
  with_image_type(program_.options().precision, [&]<class T>() {
    FillInput<T> kernel{.batch = static_cast<int>(shape[0]),
                        .side = side,
                        .padded_channels = static_cast<int>(stored[3]),
                        .pixels = reinterpret_cast<const std::uint8_t*>(upload_.data()) +
                                  first * shape[1] * shape[2] * kColours,
                        .table = table_.as<float>(),
                        .out = program_.value_of(input_).as<T>()};
    if (const SpaceToDepth* cells = program_.cells(input_)) {
      kernel.cells = {.side = static_cast<int>(cells->side),
                      .rows = static_cast<int>(stored[1]),
                      .columns = static_cast<int>(stored[2]),
                      .padding_y = static_cast<int>(cells->padding[0]),
                      .padding_x = static_cast<int>(cells->padding[1])};
    }
    launch(kernel, program_.context().stream());
  });
}

}  // namespace rk
