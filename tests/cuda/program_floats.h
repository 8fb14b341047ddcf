// Floats of a program's tensors, wherever the program runs.
#pragma once

#include "engine/device/cuda/context.h"
#include "engine/device/pinned_buffer.h"
#include "engine/tape/program.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace rk {

inline void write(const Program& program, float* place, const std::vector<float>& values) {
  const std::size_t bytes = values.size() * sizeof(float);
  if (!program.on_gpu()) {
    std::ranges::copy(values, place);
    return;
  }
  const PinnedBuffer host(bytes);
  std::ranges::copy(values, host.as<float>());
  program.context().cuda().upload(place, host.as<float>(), bytes);
  program.context().cuda().synchronize();
}

inline std::vector<float> read(const Program& program, const float* place, std::int64_t count) {
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(float);
  if (!program.on_gpu()) return {place, place + count};
  const PinnedBuffer host(bytes);
  program.context().cuda().download(host.as<float>(), place, bytes);
  program.context().cuda().synchronize();
  return {host.as<float>(), host.as<float>() + count};
}

}  // namespace rk
