// In place of kernels/cuda/histogram_rows.cu, pair_rows_cuda.cu and rank_rows_cuda.cu.
#include "kernels/cuda/gallery_kernels.h"
#include "tests/host_gpu/kernels/rows.h"

namespace rk {

RK_HISTOGRAM_ROWS(RK_GALLERY_ROWS);
RK_PAIR_ROWS(RK_GALLERY_ROWS);
RK_RANK_ROWS(RK_GALLERY_ROWS);

}  // namespace rk
