// In place of kernels/cuda/rows.cu and symmetric_cuda.cu.
#include "kernels/cuda/symmetric.h"
#include "tests/host_gpu/kernels/rows.h"

namespace rk {

using host_gpu::SerialBlock;

void plan_proxy_rows(int rows, int columns, RowScratch* scratch) {
  const std::int64_t bytes =
      std::max(SoftmaxRow<float>::scratch(columns), ProxyAnchorRow<float>::scratch(columns));
  host_gpu::plan_scratch(rows, bytes, bytes, scratch);
}

void softmax_rows(float scale, float* scores, std::int64_t stride, int rows, int columns,
                  const std::int64_t* labels, float weight, float* losses,
                  const RowScratch& scratch, CudaStream stream) {
  host_gpu::run_grid(stream, scratch, [=](const SerialBlock& block, void* shared) {
    softmax_block_rows(block, scale, scores, stride, rows, columns, labels, weight, losses, scratch,
                       shared);
  });
}

void proxy_anchor_rows(const ProxyAnchorRow<float>::Params& params, float* scores,
                       std::int64_t stride, int rows, int columns, const std::int64_t* labels,
                       const float* positive_weights, float negative_weight, float* losses,
                       const RowScratch& scratch, CudaStream stream) {
  host_gpu::run_grid(stream, scratch, [=](const SerialBlock& block, void* shared) {
    proxy_anchor_block_rows(block, params, scores, stride, rows, columns, labels, positive_weights,
                            negative_weight, losses, scratch, shared);
  });
}

void column_sums(const float* values, int rows, int columns, double* totals, CudaStream stream) {
  host_gpu::put(stream, "column_sums", [=] {
    constexpr int kShares = 32;  // as the kernel adds them up
    for (int column = 0; column < columns; ++column) {
      totals[column] = 0;
      for (int share = 0; share < kShares; ++share) {
        double part = 0;
        for (int row = share; row < rows; row += kShares) {
          part += static_cast<double>(values[static_cast<std::int64_t>(row) * columns + column]);
        }
        totals[column] += part;
      }
    }
  });
}

void add_transpose(float* matrix, std::int64_t stride, int rows, CudaStream stream) {
  host_gpu::put(stream, "add_transpose", [=] {
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j <= i; ++j) {
        const float sum = matrix[i * stride + j] + matrix[j * stride + i];
        matrix[i * stride + j] = sum;
        matrix[j * stride + i] = sum;
      }
    }
  });
}

}  // namespace rk
