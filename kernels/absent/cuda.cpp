// Stands in for kernels/cuda in a build without CUDA. No context is on a GPU there, so nothing
// should call these functions; they throw DeviceError. The lists are those the .cu files compile.
#include "engine/base/error.h"
#include "kernels/cuda/batchnorm_kernels.h"
#include "kernels/cuda/convolution_kernels.h"
#include "kernels/cuda/loss_kernels.h"
#include "kernels/cuda/ranking_kernels.h"
#include "kernels/cuda/row_lists.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/score_kernels.h"
#include "kernels/cuda/sort.h"
#include "kernels/cuda/step_kernels.h"
#include "kernels/launch_on_gpu.h"

namespace rk {
namespace {

[[noreturn]] void refuse() { fail<DeviceError>("this build has no GPU code; use --device cpu"); }

}  // namespace

template <class Kernel> void launch(const Kernel&, CudaStream) { refuse(); }
#define RK_LAUNCH(...) template void launch(const __VA_ARGS__&, CudaStream)
RK_BATCHNORM_KERNELS(RK_LAUNCH);
RK_CONVOLUTION_KERNELS(RK_LAUNCH);
RK_LOSS_KERNELS(RK_LAUNCH);
RK_RANKING_KERNELS(RK_LAUNCH);
RK_SCORE_KERNELS(RK_LAUNCH);
RK_STEP_KERNELS(RK_LAUNCH);

template <class Row> void GalleryRows<Row>::plan(const Params&, int, int, RowScratch*) { refuse(); }
template <class Row>
void GalleryRows<Row>::measure(const RowBatch<float>&, const Params*, float*, int,
                               const RowScratch&, CudaStream) {
  refuse();
}
template <class Row>
void GalleryRows<Row>::run(const RowBatch<float>&, const Params*, const RowScratch&, CudaStream) {
  refuse();
}
#define RK_INSTANTIATE_GALLERY_ROWS(Row) template struct GalleryRows<Row<float>>
RK_HISTOGRAM_ROWS(RK_INSTANTIATE_GALLERY_ROWS);
RK_PAIR_ROWS(RK_INSTANTIATE_GALLERY_ROWS);
RK_RANK_ROWS(RK_INSTANTIATE_GALLERY_ROWS);

template <class Row> void ProxyRows<Row>::plan(int, int, RowScratch*) { refuse(); }
template <class Row>
void ProxyRows<Row>::run(const ProxyBatch<float>&, const Params&, const RowScratch&, CudaStream) {
  refuse();
}
#define RK_INSTANTIATE_PROXY_ROWS(Row) template struct ProxyRows<Row<float>>
RK_PROXY_ROWS(RK_INSTANTIATE_PROXY_ROWS);

template <class Key> std::size_t sort_bytes(std::int64_t) { refuse(); }
template <class Key>
DevicePairs<Key> sort_pairs(std::int64_t, int, DevicePairs<Key>, DevicePairs<Key>, void*,
                            std::size_t, CudaStream) {
  refuse();
}
#define RK_SORT(Key)                                                                          \
  template std::size_t sort_bytes<Key>(std::int64_t);                                         \
  template DevicePairs<Key> sort_pairs(std::int64_t, int, DevicePairs<Key>, DevicePairs<Key>, \
                                       void*, std::size_t, CudaStream)
RK_SORT(std::uint32_t);
RK_SORT(std::uint64_t);

}  // namespace rk
