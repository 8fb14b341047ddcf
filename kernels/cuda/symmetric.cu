#include "engine/device/cuda/error.h"
#include "kernels/cuda/symmetric.h"

namespace rk {
namespace {

constexpr int kTile = 32;
constexpr int kRowsAtOnce = 8;

// A block takes the tiles (y, x) and (x, y), x >= y, reading and writing whole lines of both.
__global__ void __launch_bounds__(kTile* kRowsAtOnce)
    add_transpose_kernel(float* matrix, std::int64_t stride, int rows) {
  // One extra column, so that a column of a tile lies in 32 different banks.
  __shared__ float upper[kTile][kTile + 1];
  __shared__ float lower[kTile][kTile + 1];
  const int tile_x = static_cast<int>(blockIdx.x);
  const int tile_y = static_cast<int>(blockIdx.y);
  if (tile_x < tile_y) return;
  const int x = static_cast<int>(threadIdx.x);
  const auto at = [&](int row, int column) {
    return matrix + static_cast<std::int64_t>(row) * stride + column;
  };
  const auto inside = [&](int row, int column) { return row < rows && column < rows; };
  for (int y = static_cast<int>(threadIdx.y); y < kTile; y += kRowsAtOnce) {
    const int up_row = tile_y * kTile + y;
    const int up_column = tile_x * kTile + x;
    const int low_row = tile_x * kTile + y;
    const int low_column = tile_y * kTile + x;
    if (inside(up_row, up_column)) upper[y][x] = *at(up_row, up_column);
    if (inside(low_row, low_column)) lower[y][x] = *at(low_row, low_column);
  }
  __syncthreads();
  for (int y = static_cast<int>(threadIdx.y); y < kTile; y += kRowsAtOnce) {
    const int up_row = tile_y * kTile + y;
    const int up_column = tile_x * kTile + x;
    const int low_row = tile_x * kTile + y;
    const int low_column = tile_y * kTile + x;
    if (inside(up_row, up_column)) *at(up_row, up_column) = upper[y][x] + lower[x][y];
    // A diagonal tile is its own mirror image and has been written already.
    if (tile_x != tile_y && inside(low_row, low_column)) {
      *at(low_row, low_column) = lower[y][x] + upper[x][y];
    }
  }
}

}  // namespace

void add_transpose(float* matrix, std::int64_t stride, int rows, CudaStream stream) {
  if (rows == 0) return;
  const auto tiles = static_cast<unsigned>((rows + kTile - 1) / kTile);
  add_transpose_kernel<<<dim3(tiles, tiles), dim3(kTile, kRowsAtOnce), 0, stream>>>(matrix, stride,
                                                                                    rows);
  check_cuda(cudaGetLastError(), "transpose");
}

}  // namespace rk
