#include "engine/device/cuda/error.h"
#include "kernels/cuda/column_sums.h"

#include <cstdint>

namespace rk {
namespace {

// A block takes 32 columns; thread (x, y) adds column x over rows y, y + 32, ..., then the 32
// shares are added in the order of y.
constexpr int kTile = 32;

__global__ void __launch_bounds__(kTile* kTile)
    column_sums_kernel(const float* values, int rows, int columns, double* totals) {
  __shared__ double shares[kTile][kTile];
  const int x = static_cast<int>(threadIdx.x);
  const int y = static_cast<int>(threadIdx.y);
  const int column = static_cast<int>(blockIdx.x) * kTile + x;
  double share = 0;
  if (column < columns) {
    for (int row = y; row < rows; row += kTile) {
      share += static_cast<double>(values[static_cast<std::int64_t>(row) * columns + column]);
    }
  }
  shares[y][x] = share;
  __syncthreads();
  if (y != 0 || column >= columns) return;
  double total = 0;
  for (int k = 0; k < kTile; ++k) total += shares[k][x];
  totals[column] = total;
}

}  // namespace

void column_sums(const float* values, int rows, int columns, double* totals, CudaStream stream) {
  const auto blocks = static_cast<unsigned>((columns + kTile - 1) / kTile);
  column_sums_kernel<<<blocks, dim3(kTile, kTile), 0, stream>>>(values, rows, columns, totals);
  check_cuda(cudaGetLastError(), "row kernel");
}

}  // namespace rk
