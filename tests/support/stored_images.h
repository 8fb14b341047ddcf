// Values of a program's tensors, images as NHWC, to and from the layout in which the program stores
// them (engine/tape/layout.h).
#pragma once

#include "engine/tape/layout.h"
#include "engine/tape/program.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rk {

// Calls copy(stored offset, NHWC offset) for every element of a tensor whose channels are stored in
// blocks; block 0: as they are.
template <class F> void for_each_stored(const Shape& shape, std::int64_t block, F&& copy) {
  if (block == 0) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(shape.elements()); ++i) copy(i, i);
    return;
  }
  const std::int64_t channels = shape[3], pixels = shape[1] * shape[2];
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    const std::int64_t n = i / (pixels * channels), pixel = i / channels % pixels, c = i % channels;
    const std::int64_t plane = n * (channels / block) + c / block;
    copy(static_cast<std::size_t>((plane * pixels + pixel) * block + c % block),
         static_cast<std::size_t>(i));
  }
}

inline std::vector<float> as_stored(const Program& program, TensorId id,
                                    const std::vector<float>& values) {
  std::vector<float> stored(values.size());
  for_each_stored(program.shape(id), program.channel_block(id),
                  [&](std::size_t to, std::size_t from) { stored[to] = values[from]; });
  return stored;
}

inline std::vector<float> from_stored(const Program& program, TensorId id, const float* stored) {
  std::vector<float> values(static_cast<std::size_t>(program.shape(id).elements()));
  for_each_stored(program.shape(id), program.channel_block(id),
                  [&](std::size_t from, std::size_t to) { values[to] = stored[from]; });
  return values;
}

}  // namespace rk
