// The sums over each channel of an input's masked gradient, from the graph that computes it: a
// folded batch normalisation before the convolution has use for them, and need not read the
// gradient for them (kernels/blocks/folded_block.h).
//
// The library has such a graph ready made, in fp16, for a convolution behind a batch normalisation
// and a ReLU: it takes that normalisation's input x, computes the mask anew, and gives dgamma and
// dbeta = sum g. With the ReLU's output for x and a normalisation that changes nothing the mask is
// the same and dbeta the sum.
#pragma once

#include "engine/device/context.h"
#include "engine/device/memory.h"
#include "layers/graphs/graph_run.h"

#include <cstdint>
#include <vector>

namespace rk::gpu {

// Whether it is the graph of an input's masked gradient.
bool is_masked_gradient(const Graph& graph);

// gradient: the graph of an input's gradient, possibly with an addend. Returns it extended by the
// ReLU's mask and by the channel sums; kX is the normalisation's input. residual: the ReLU comes
// behind normalised + kResidual.
Graph graph_with_sums(const Graph& gradient, bool residual = false);

// A normalisation of so many channels that changes nothing, for the graph to read, and room for
// what it writes and nobody asked for.
class UnitNormalisation {
 public:
  UnitNormalisation() = default;
  UnitNormalisation(const Context& context, std::int64_t channels);

  // All that the graph has beside the tensors of the gradient. sums: [channels].
  std::vector<GpuGraph::Place> places(float* sums) const;

 private:
  std::int64_t channels_ = 0;
  Memory vectors_;
};

}  // namespace rk::gpu
