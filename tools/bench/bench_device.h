// `bench rank` and `bench eval` on a GPU: what is timed there.
#pragma once

#include "engine/device/cuda/context.h"
#include "losses/registry.h"
#include "tools/cli/timing.h"

#include <cstdint>
#include <span>

namespace rk {

struct DeviceRankTimes {
  Timing total, sort;
  std::int64_t bytes = 0;
  int kernels = 0;  // that a launch puts on the stream, copies and the sorts' own among them
};

// Value and gradient of `spec` on one ranking, and a sort of as many pairs alone, alternating.
DeviceRankTimes time_device_ranking(const Context& context, const LossSpec& spec,
                                    std::span<const float> scores,
                                    std::span<const std::uint8_t> targets, int repeats);

// Milliseconds of the products of an evaluation alone (retrieval/passes/device_score_pass.h).
double device_products_ms(const CudaContext& cuda, std::int64_t queries, std::int64_t gallery,
                          std::int64_t dim);

}  // namespace rk
