// The timings of `bench rank` and `bench eval` on a GPU.
#pragma once

#include "engine/device/cuda/context.h"
#include "losses/registry.h"
#include "tools/bench/timing.h"

#include <cstdint>
#include <span>

namespace rk {

struct DeviceRankTimes {
  Timing total, sort;
  std::int64_t bytes = 0;
  int kernels = 0;  // put on the stream per launch, including copies and the sorts' own
};

// Times value and gradient of `spec` on one ranking, alternating with just a sort of as many pairs.
DeviceRankTimes time_gpu_ranking(const Context& context, const LossSpec& spec,
                                 std::span<const float> scores,
                                 std::span<const std::uint8_t> targets, int repeats);

// Milliseconds of only the products of an evaluation (retrieval/passes/gpu_score_pass.h).
double device_products_ms(const CudaContext& cuda, std::int64_t queries, std::int64_t gallery,
                          std::int64_t dim);

}  // namespace rk
