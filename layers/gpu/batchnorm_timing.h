// Which algorithm of batch normalisation (layers/gpu/batchnorm.h) is the fastest behind a
// convolution: both are run forward and backward, the algorithms in turn, on random numbers.
// (Kernels cannot be timed each by itself: the algorithms share the work between convolution and
// normalisation differently.)
#pragma once

#include "layers/gpu/batchnorm.h"
#include "layers/graphs/plans.h"

#include <array>
#include <string>
#include <vector>

namespace rk::gpu {

enum class BatchNormAlgorithm : std::uint8_t { kGraphs, kOwn, kSums };
inline constexpr std::array kBatchNormAlgorithms = {
    BatchNormAlgorithm::kGraphs, BatchNormAlgorithm::kOwn, BatchNormAlgorithm::kSums};

// A convolution with the batch normalisation behind it, and how often the network has it.
struct BatchNormUnit {
  ConvolutionGeometry convolution;
  BatchNormOptions batchnorm;
  bool input_gradient = false;  // of the convolution
  int count = 0;
  Graph sums;              // the convolution's, with sums beside it
  BatchNormGraphs graphs;  // the normalisation's
};

// The distinct ones of a program that trains with the batch's statistics.
std::vector<BatchNormUnit> batchnorm_units(const Program& program);

struct AlgorithmTiming {
  double ms = 0;              // forward and backward of both, median
  double error = 0;           // max |y - y_own| / max |y_own|, own: our own kernels'
  double gradient_error = 0;  // relative RMS difference of the parameters' gradients from theirs
  bool agrees = false;        // and gives the same bits again
};

// `plans` with what makes a program take that algorithm at `unit`.
GpuPlans plans_for(BatchNormAlgorithm algorithm, const BatchNormUnit& unit,
                   const std::string& sums_engine, GpuPlans plans);

// plans: the engines of the convolutions and normalisations; the context's plan table is left so.
// sums_engine: of the convolution with sums; empty: there is none, and that algorithm does not
// agree.
using AlgorithmTimings = std::array<AlgorithmTiming, kBatchNormAlgorithms.size()>;
AlgorithmTimings time_algorithms(const Context& context, const BatchNormUnit& unit,
                                 const GpuPlans& plans, const std::string& sums_engine,
                                 int repeats);

}  // namespace rk::gpu
