// In place of kernels/cuda/histogram_rows.cu, pair_rows.cu, rank_rows.cu and proxy_rows.cu.
#include "tests/host_gpu/kernels/rows.h"

#include "kernels/cuda/row_lists.h"

namespace rk {

RK_HISTOGRAM_ROWS(RK_INSTANTIATE_GALLERY_ROWS);
RK_PAIR_ROWS(RK_INSTANTIATE_GALLERY_ROWS);
RK_RANK_ROWS(RK_INSTANTIATE_GALLERY_ROWS);
RK_PROXY_ROWS(RK_INSTANTIATE_PROXY_ROWS);

}  // namespace rk
