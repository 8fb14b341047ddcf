// What of a batch normalisation cuDNN can compute in the convolutions beside it: graphs that stand
// for others and for passes of our own kernels (kernels/blocks/batchnorm_block.h). Training with
// the batch's statistics uses the first kind, where the plan table says so
// (layers/gpu/batchnorm.h); whether the others are worth it on a GPU is asked with
// `bench step --fusions`.
//
// In fp16 alone: the library has the others in no other precision. Scale and bias in front of a
// convolution are in 16 bits, as its engines want them.
#pragma once

#include "layers/graphs/graph.h"

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace rk::gpu {

enum class FusionKind : std::uint8_t {
  kOutputSums,         // conv -> conv, with sum and sum of squares for the normalisation behind it
  kNormalizedInput,    // conv, wgrad -> both of relu(scale x + bias), the conv with sums: the
                       // normalised image in front is never written
  kGradientSums,       // dgrad -> the gradient before that ReLU, with the sums that the gradient of
                       // the normalisation in front takes
  kBlockGradientSums,  // the same behind a ReLU of normalised + residual
};
inline constexpr std::array kFusionKinds = {FusionKind::kOutputSums, FusionKind::kNormalizedInput,
                                            FusionKind::kGradientSums,
                                            FusionKind::kBlockGradientSums};
std::string_view name_of(FusionKind kind);

struct Fusion {
  FusionKind kind{};
  std::vector<Graph> parts, fused;  // what is computed today, what would be in its place
  double saved_bytes = 0;           // that our own kernels would not read or write any more
  int count = 0;                    // how often a step has it
};

// Those of a program in fp16 with the batch's statistics, recorded without a plan table: the same
// once, in the order of the kinds and of the nodes.
std::vector<Fusion> fusions(Program& program);

}  // namespace rk::gpu
