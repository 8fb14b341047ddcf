// SimilarityMatrix (losses/frame/similarity.h) on a GPU: the products of a batch's similarities
// S = E [E; memory]^T and the way back, dE = (G + G^T) E + G_memory * memory, in one matrix.
#pragma once

#include "engine/device/cuda/context.h"
#include "losses/cuda/loss.h"

namespace rk {

struct DeviceSimilarity {
  std::int64_t rows = 0;     // N
  std::int64_t columns = 0;  // N + M
  float* matrix = nullptr;   // [rows, stride]
  std::int64_t stride = 0;   // pad(columns) or more

  void forward(const CudaContext& cuda, const DeviceLossInput& input) const;
  // `matrix` holds G + G^T in its square part.
  void backward(const CudaContext& cuda, const DeviceLossInput& input, float* grad) const;
};

}  // namespace rk
