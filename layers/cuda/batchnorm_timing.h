// Which way of batch normalisation (gpu_batchnorm.h) is the fastest behind a convolution: both
// are run forward and backward, the ways in turn, on random numbers. (Kernels cannot be timed each
// by itself: the ways share the work between convolution and normalisation differently.)
#pragma once

#include "layers/graphs/graph.h"
#include "layers/graphs/plans.h"

#include <array>
#include <string>

namespace rk::gpu {

enum class BatchNormWay : std::uint8_t { kGraphs, kOwn, kSums };
inline constexpr std::array kBatchNormWays = {BatchNormWay::kGraphs, BatchNormWay::kOwn,
                                              BatchNormWay::kSums};

struct WayTiming {
  double ms = 0;     // forward and backward of both, median
  double error = 0;  // largest difference of the output from our own kernels', of its largest value
  // Root of the mean square of the difference between the parameters' gradients and our own
  // kernels', of that of theirs.
  double gradient_error = 0;
  bool agrees = false;
};

// `plans` with what makes a program take that way at `unit`.
GpuPlans plans_for(BatchNormWay way, const BatchNormUnit& unit, const std::string& sums_engine,
                   GpuPlans plans);

// plans: the engines of the convolutions and normalisations; the context's plan table is left so.
// sums_engine: of the convolution with sums; empty: there is none, and that way does not agree.
using WayTimings = std::array<WayTiming, kBatchNormWays.size()>;  // by way
WayTimings time_ways(const Context& context, const BatchNormUnit& unit, const GpuPlans& plans,
                     const std::string& sums_engine, int repeats);

}  // namespace rk::gpu
