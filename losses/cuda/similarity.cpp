#include "losses/cuda/similarity.h"

namespace rk {

void DeviceSimilarity::forward(const CudaContext& cuda, const DeviceLossInput& input) const {
  const std::int64_t dim = input.dim;
  cuda.product_abt(rows, rows, dim, input.embeddings, dim, input.embeddings, dim, matrix, stride);
  cuda.product_abt(rows, columns - rows, dim, input.embeddings, dim, input.memory, dim,
                   matrix + rows, stride);
}

void DeviceSimilarity::backward(const CudaContext& cuda, const DeviceLossInput& input,
                                float* grad) const {
  const std::int64_t dim = input.dim;
  const std::int64_t memory = columns - rows;
  cuda.product_ab(rows, dim, rows, matrix, stride, input.embeddings, dim, 0.0F, grad, dim);
  if (memory == 0) return;
  cuda.product_ab(rows, dim, memory, matrix + rows, stride, input.memory, dim, 1.0F, grad, dim);
}

}  // namespace rk
