#include "kernels/cuda/row_lists.h"
#include "kernels/cuda/rows.cuh"

namespace rk {

RK_RANK_ROWS(RK_INSTANTIATE_GALLERY_ROWS);

}  // namespace rk
