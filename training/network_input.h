// Pixels into a network's input tensor: (level / 255 - mean) / std as float32, in the layout that
// the program asks for (planes of pixels, or NHWC).
#pragma once

#include "data/images/transform.h"
#include "engine/tape/program.h"
#include "weights/checkpoint.h"

#include <cstdint>
#include <span>

namespace rk {

// The values of a model, rounded to float32 as torchvision does.
FloatTable float_table(const ModelDescription& model);

// pixels: [count, size, size, 3] uint8, count <= the program's batch; the rows behind keep what
// they hold. Allocates nothing.
void fill_input(Program& program, TensorId input, const FloatTable& table,
                std::span<const std::uint8_t> pixels);

}  // namespace rk
