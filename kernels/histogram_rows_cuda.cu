#include "kernels/gallery_kernels.h"
#include "kernels/rows_cuda.cuh"

namespace rk {

RK_HISTOGRAM_ROWS(RK_GALLERY_ROWS);

}  // namespace rk
