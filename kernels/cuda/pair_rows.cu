#include "kernels/cuda/row_lists.h"
#include "kernels/cuda/rows.cuh"

namespace rk {

RK_PAIR_ROWS(RK_INSTANTIATE_GALLERY_ROWS);

}  // namespace rk
