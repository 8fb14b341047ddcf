#include "kernels/cuda/gallery_kernels.h"
#include "kernels/cuda/rows.cuh"

namespace rk {

RK_HISTOGRAM_ROWS(RK_GALLERY_ROWS);

}  // namespace rk
