// In place of kernels/cuda/symmetric.cu.
#include "kernels/cuda/symmetric.h"
#include "tests/host_gpu/device/stream.h"

namespace rk {

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
