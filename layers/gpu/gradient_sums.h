// The sums over each channel of an input's masked gradient, from the graph that computes the
// gradient: a folded batch normalisation before the convolution needs these sums, and then does not
// have to read the gradient for them (kernels/blocks/folded_block.h).
//
// cuDNN has such a graph ready-made, in fp16, for a convolution after a batch normalisation and a
// ReLU: it reads that normalisation's input x, recomputes the mask, and returns dgamma and dbeta =
// sum g. With the ReLU's output as x and an identity normalisation, the mask is the same and dbeta
// is the sum.
#pragma once

#include "engine/device/context.h"
#include "engine/device/memory.h"
#include "layers/graphs/graph_runner.h"

#include <cstdint>
#include <vector>

namespace rk::gpu {

// Whether this is the graph of an input's masked gradient.
bool is_masked_gradient(const Graph& graph);

// gradient: the graph of an input's gradient, possibly with an addend. Returns the graph extended
// by the ReLU's mask and the channel sums; kX is the normalisation's input. residual: the ReLU
// follows normalised + kResidual.
Graph graph_with_sums(const Graph& gradient, bool residual = false);

// The vectors of an identity normalisation for the graph to read, and memory for the outputs of the
// graph that nobody needs.
class UnitNormalisation {
 public:
  UnitNormalisation() = default;
  UnitNormalisation(const Context& context, std::int64_t channels);

  // The places of all that the graph has besides the gradient's tensors. sums: [channels].
  std::vector<GraphRunner::Place> places(float* sums) const;

 private:
  std::int64_t channels_ = 0;
  Memory vectors_;
};

}  // namespace rk::gpu
