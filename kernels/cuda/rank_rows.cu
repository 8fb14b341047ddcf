#include "kernels/cuda/gallery_kernels.h"
#include "kernels/cuda/rows.cuh"

namespace rk {

RK_RANK_ROWS(RK_GALLERY_ROWS);

}  // namespace rk
