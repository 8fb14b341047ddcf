// The parts of a batch normalisation that cuDNN can compute within the convolutions beside it:
// graphs that replace other graphs and passes of our own kernels
// (kernels/blocks/batchnorm_block.h). Training with batch statistics uses the first kind if the
// plan table says so (layers/gpu/batchnorm.h); `bench step --fusions` tells whether the others are
// worth it on a GPU.
//
// Only in fp16: cuDNN has the others in no other precision. Scale and bias before a convolution are
// 16-bit, as its engines require.
#pragma once

#include "layers/graphs/graph.h"

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace rk {

enum class FusionKind : std::uint8_t {
  kOutputSums,         // conv -> conv, with sum and sum of squares for the normalisation after it
  kNormalizedInput,    // conv, wgrad -> both of relu(scale x + bias), the conv with sums: the
                       // normalised image before them is never written
  kGradientSums,       // dgrad -> the gradient before that ReLU, with the sums that the gradient of
                       // the normalisation before it needs
  kBlockGradientSums,  // the same after a ReLU of normalised + residual
};
inline constexpr std::array kFusionKinds = {FusionKind::kOutputSums, FusionKind::kNormalizedInput,
                                            FusionKind::kGradientSums,
                                            FusionKind::kBlockGradientSums};
std::string_view name_of(FusionKind kind);

struct Fusion {
  FusionKind kind{};
  std::vector<Graph> parts, fused;  // what is computed today, what would replace it
  double saved_bytes = 0;           // that our own kernels would no longer read or write
  int count = 0;                    // how often a step contains it
};

// The fusions of a program in fp16 with batch statistics, recorded without a plan table: each
// distinct one once, ordered by kind and then by node.
std::vector<Fusion> find_fusions(Program& program);

}  // namespace rk
