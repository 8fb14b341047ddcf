// The rows whose cost is a sigmoid or a comparison for every positive and column.
#include "kernels/pnp_row.h"
#include "kernels/rambo_row.h"
#include "kernels/recall_at_k_row.h"
#include "kernels/rows_cuda.cuh"
#include "kernels/smooth_ap_row.h"
#include "kernels/sup_ap_row.h"

namespace rk {

RK_GALLERY_ROWS(SmoothApRow);
RK_GALLERY_ROWS(PnpRow);
RK_GALLERY_ROWS(RamboRow);
RK_GALLERY_ROWS(RecallAtKRow);
RK_GALLERY_ROWS(SupApRow);

}  // namespace rk
