#include "kernels/cuda/row_lists.h"
#include "kernels/cuda/rows.cuh"

namespace rk {

RK_PROXY_ROWS(RK_INSTANTIATE_PROXY_ROWS);

}  // namespace rk
