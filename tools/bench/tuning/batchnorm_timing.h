// Finds the fastest algorithm of batch normalisation (layers/gpu/batchnorm.h) after a given
// convolution: runs convolution and normalisation forward and backward on random numbers, the
// algorithms in turn. (Kernels cannot be timed one by one, because the algorithms divide the work
// differently between convolution and normalisation.)
#pragma once

#include "layers/gpu/batchnorm.h"
#include "layers/graphs/plans.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace rk {

enum class BatchNormAlgorithm : std::uint8_t { kGraphs, kOwn, kSums };
inline constexpr std::array kBatchNormAlgorithms = {
    BatchNormAlgorithm::kGraphs, BatchNormAlgorithm::kOwn, BatchNormAlgorithm::kSums};

// A convolution followed by a batch normalisation, and how often the network has this pair.
struct BatchNormUnit {
  ConvolutionGeometry convolution;
  BatchNormOptions batchnorm;
  bool input_gradient = false;  // of the convolution
  int count = 0;
  Graph sums;                   // the convolution's graph with channel sums
  gpu::BatchNormGraphs graphs;  // the normalisation's
};

// The distinct units of a program that trains with batch statistics.
std::vector<BatchNormUnit> batchnorm_units(const Program& program);

struct AlgorithmTiming {
  double ms = 0;              // of both, forward and backward, median
  double error = 0;           // relative RMS difference of y from our own kernels' y
  double gradient_error = 0;  // relative RMS difference of the parameters' gradients from our own
                              // kernels'
  bool agrees = false;        // and repeats give the same bits
};

// `plans`, changed so that a program uses that algorithm at `unit`.
GpuPlans plans_for(BatchNormAlgorithm algorithm, const BatchNormUnit& unit,
                   const std::string& sums_engine, GpuPlans plans);

// plans: the engines of the convolutions and normalisations; also the context's plan table on
// return. sums_engine: for the convolution with sums; empty: there is none, and that algorithm
// counts as not agreeing.
using AlgorithmTimings = std::array<AlgorithmTiming, kBatchNormAlgorithms.size()>;
AlgorithmTimings time_algorithms(const Context& context, const BatchNormUnit& unit,
                                 const GpuPlans& plans, const std::string& sums_engine,
                                 int repeats);

}  // namespace rk
