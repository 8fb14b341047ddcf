// Kernels over rows that take no gallery row: proxies, sums over rows.
#include "kernels/cuda/gallery_kernels.h"
#include "kernels/cuda/rows.cuh"

namespace rk {
namespace {

template <class Row>
RK_ROW_KERNEL proxy_rows_kernel(const ProxyBatch<float> batch, const typename Row::Params params,
                                const RowScratch scratch) {
  extern __shared__ __align__(64) unsigned char shared[];
  __shared__ BlockMemory memory;
  run_block_proxy_rows<Row>(CudaBlock(&memory), batch, params, scratch, shared);
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

template <class Row> void ProxyRows<Row>::plan(int rows, int columns, RowScratch* scratch) {
  const std::int64_t bytes = Row::scratch(columns);
  plan_scratch(rows, bytes, bytes, scratch, proxy_rows_kernel<Row>);
}

template <class Row>
void ProxyRows<Row>::run(const ProxyBatch<float>& batch, const Params& params,
                         const RowScratch& scratch, CudaStream stream) {
  proxy_rows_kernel<Row>
      <<<static_cast<unsigned>(scratch.blocks), CudaBlock::kThreads,
         static_cast<std::size_t>(scratch.shared_bytes), stream>>>(batch, params, scratch);
  check_cuda(cudaGetLastError(), "row kernel");
}

#define RK_PROXY_KERNEL(Row) template struct ProxyRows<Row<float>>
RK_PROXY_ROWS(RK_PROXY_KERNEL);

void column_sums(const float* values, int rows, int columns, double* totals, CudaStream stream) {
  const auto blocks = static_cast<unsigned>((columns + kTile - 1) / kTile);
  column_sums_kernel<<<blocks, dim3(kTile, kTile), 0, stream>>>(values, rows, columns, totals);
  check_cuda(cudaGetLastError(), "row kernel");
}

}  // namespace rk
