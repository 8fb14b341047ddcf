// Whole networks forward and backward on a GPU against the CPU: embeddings, gradients of all
// parameters, running statistics, over several passes, so that state left behind by one pass shows
// in the next.
#pragma once

#include "engine/device/context.h"
#include "engine/device/precision.h"
#include "kernels/blocks/pool_kind.h"
#include "layers/batchnorm.h"
#include "layers/networks/network.h"
#include "tools/bench/tuning/batchnorm_timing.h"

#include <cstdint>
#include <string>

namespace rk {

struct NetworkCase {
  std::string arch = "resnet18";
  BatchNormMode mode = BatchNormMode::kBatch;
  Precision precision = Precision::kFp32;
  bool keep_all = false;
  PoolKind pool = PoolKind::kAverage;
  bool fuse = true;
  // How the GPU normalises with batch statistics.
  BatchNormAlgorithm algorithm = BatchNormAlgorithm::kGraphs;
  // With running statistics, on the GPU, in fp16: the graphs of gradients add up their sums.
  bool graph_sums = false;
  std::int64_t batch = 3;
  std::int64_t side = 40;  // odd sizes further down: 10, 5, 3, 2

  bool operator==(const NetworkCase&) const = default;
};

// Otherwise a network is made of branches.
bool is_residual(const std::string& arch);

NetworkSpec network_spec(const NetworkCase& network);

// Makes programs recorded on the context from now on normalise by the case's algorithm.
void take_algorithm(const Context& context, const NetworkCase& network);

// Expects the GPU's results to be the CPU's in float32 within the bounds of the case's precision.
void compare_network_with_cpu(const NetworkCase& network, const Context& gpu);

// The root mean square of a - b, relative to that of b: rounding spreads over a tensor, and single
// elements of it may be near 0.
double off(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace rk
