// The times of `bench rank`: a loss of scores beside a sort of as many.
#pragma once

#include "engine/device/context.h"
#include "losses/registry.h"
#include "tools/bench/timing.h"

#include <cstdint>
#include <span>

namespace rk {

struct RankTimes {
  Timing total, sort;
  std::int64_t bytes = 0;  // of the loss
  int kernels = 0;  // on a GPU: put on the stream per launch, including copies and the sorts' own
};

// Times value and gradient of `spec` on one ranking, alternating with just a sort of as many pairs.
RankTimes time_ranking(const Context& context, const LossSpec& spec, std::span<const float> scores,
                       std::span<const std::uint8_t> targets, int repeats);

}  // namespace rk
