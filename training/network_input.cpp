#include "training/network_input.h"

#include "engine/base/error.h"
#include "engine/base/parallel.h"
#include "layers/gpu/input.h"

#include <algorithm>
#include <utility>

namespace rk {

FloatTable float_table(const ModelDescription& model) {
  return {model.input_mean, model.input_std};
}

void fill_input(Program& program, TensorId input, const FloatTable& table,
                std::span<const std::uint8_t> pixels) {
  const Shape& shape = program.shape(input);
  const std::int64_t plane = shape[1] * shape[2], image = 3 * plane;
  const auto bytes = static_cast<std::int64_t>(pixels.size());
  expect(bytes % image == 0 && bytes / image <= shape[0],
         "[input] expected images of {}, got {} bytes", shape.text(), bytes);
  const bool planar = program.channel_block(input) == 1;
  float* out = program.value(input);
  parallel_for(program.context().threads(), bytes / image, [&](std::int64_t n, int) {
    const std::uint8_t* in = pixels.data() + n * image;
    float* to = out + n * image;
    const std::int64_t step = planar ? 1 : 3, channel = planar ? plane : 1;
    for (int c = 0; c < 3; ++c) {
      for (std::int64_t p = 0; p < plane; ++p) {
        to[c * channel + p * step] = table.value(c, in[p * 3 + c]);
      }
    }
  });
}

NetworkInput::NetworkInput(Program& program, TensorId input, const FloatTable& table,
                           std::int64_t images)
    : program_(program), input_(input), table_(table) {
  if (!program.on_gpu()) return;
  gpu_ = std::make_unique<GpuInput>(program, input, table_.levels(), images);
}

NetworkInput::~NetworkInput() = default;

void NetworkInput::stage(std::span<const std::uint8_t> pixels) {
  if (gpu_ != nullptr) return gpu_->stage(pixels);
  staged_ = pixels;
}

void NetworkInput::take() {
  if (gpu_ != nullptr) return gpu_->take();
  pixels_ = staged_;
}

void NetworkInput::take_back() {
  expect(gpu_ != nullptr, "[input] expected copied pixels");
  gpu_->take_back();
}

void NetworkInput::fill(std::int64_t first) {
  if (gpu_ != nullptr) return gpu_->fill(first);
  const Shape& shape = program_.shape(input_);
  const auto image = static_cast<std::size_t>(3 * shape[1] * shape[2]);
  const auto behind = pixels_.subspan(static_cast<std::size_t>(first) * image);
  fill_input(program_, input_, table_,
             behind.first(std::min(behind.size(), static_cast<std::size_t>(shape[0]) * image)));
}

std::size_t NetworkInput::bytes() const { return gpu_ != nullptr ? gpu_->bytes() : 0; }

}  // namespace rk
