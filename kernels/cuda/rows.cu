// Kernels over rows that take no gallery row: proxies, sums over rows.
#include "kernels/cuda/rows.cuh"

namespace rk {
namespace {

RK_ROW_KERNEL softmax_kernel(float scale, float* scores, std::int64_t stride, int rows, int columns,
                             const std::int64_t* labels, float weight, float* losses,
                             const RowScratch scratch) {
  extern __shared__ __align__(64) unsigned char shared[];
  __shared__ BlockMemory memory;
  softmax_block_rows(CudaBlock(&memory), scale, scores, stride, rows, columns, labels, weight,
                     losses, scratch, shared);
}

RK_ROW_KERNEL proxy_anchor_kernel(const ProxyAnchorRow<float>::Params params, float* scores,
                                  std::int64_t stride, int rows, int columns,
                                  const std::int64_t* labels, const float* positive_weights,
                                  float negative_weight, float* losses, const RowScratch scratch) {
  extern __shared__ __align__(64) unsigned char shared[];
  __shared__ BlockMemory memory;
  proxy_anchor_block_rows(CudaBlock(&memory), params, scores, stride, rows, columns, labels,
                          positive_weights, negative_weight, losses, scratch, shared);
}

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

void plan_proxy_rows(int rows, int columns, RowScratch* scratch) {
  const std::int64_t bytes =
      std::max(SoftmaxRow<float>::scratch(columns), ProxyAnchorRow<float>::scratch(columns));
  plan_scratch(rows, bytes, bytes, scratch, softmax_kernel, proxy_anchor_kernel);
}

void softmax_rows(float scale, float* scores, std::int64_t stride, int rows, int columns,
                  const std::int64_t* labels, float weight, float* losses,
                  const RowScratch& scratch, CudaStream stream) {
  softmax_kernel<<<static_cast<unsigned>(scratch.blocks), CudaBlock::kThreads,
                   static_cast<std::size_t>(scratch.shared_bytes), stream>>>(
      scale, scores, stride, rows, columns, labels, weight, losses, scratch);
  check_cuda(cudaGetLastError(), "row kernel");
}

void proxy_anchor_rows(const ProxyAnchorRow<float>::Params& params, float* scores,
                       std::int64_t stride, int rows, int columns, const std::int64_t* labels,
                       const float* positive_weights, float negative_weight, float* losses,
                       const RowScratch& scratch, CudaStream stream) {
  proxy_anchor_kernel<<<static_cast<unsigned>(scratch.blocks), CudaBlock::kThreads,
                        static_cast<std::size_t>(scratch.shared_bytes), stream>>>(
      params, scores, stride, rows, columns, labels, positive_weights, negative_weight, losses,
      scratch);
  check_cuda(cudaGetLastError(), "row kernel");
}

void column_sums(const float* values, int rows, int columns, double* totals, CudaStream stream) {
  const auto blocks = static_cast<unsigned>((columns + kTile - 1) / kTile);
  column_sums_kernel<<<blocks, dim3(kTile, kTile), 0, stream>>>(values, rows, columns, totals);
  check_cuda(cudaGetLastError(), "row kernel");
}

}  // namespace rk
