#include "losses/cuda/similarity.h"

namespace rk {

void DeviceSimilarity::forward(const CudaContext& cuda, const DeviceLossInput& input) const {
  const std::int64_t dim = input.dim;
  cuda.gemm(Op::kNone, Op::kTranspose, rows, rows, dim, 1.0F, input.embeddings, dim,
            input.embeddings, dim, 0.0F, matrix, stride);
  cuda.gemm(Op::kNone, Op::kTranspose, rows, columns - rows, dim, 1.0F, input.embeddings, dim,
            input.memory, dim, 0.0F, matrix + rows, stride);
}

void DeviceSimilarity::backward(const CudaContext& cuda, const DeviceLossInput& input,
                                float* grad) const {
  const std::int64_t dim = input.dim;
  const std::int64_t memory = columns - rows;
  cuda.gemm(Op::kNone, Op::kNone, rows, dim, rows, 1.0F, matrix, stride, input.embeddings, dim,
            0.0F, grad, dim);
  if (memory == 0) return;
  cuda.gemm(Op::kNone, Op::kNone, rows, dim, memory, 1.0F, matrix + rows, stride, input.memory, dim,
            1.0F, grad, dim);
}

}  // namespace rk
