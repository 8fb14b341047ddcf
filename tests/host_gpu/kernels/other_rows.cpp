// In place of kernels/cuda/rows.cu and symmetric.cu.
#include "kernels/cuda/rows.h"
#include "kernels/cuda/symmetric.h"
#include "tests/host_gpu/device/stream.h"

namespace rk {

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
