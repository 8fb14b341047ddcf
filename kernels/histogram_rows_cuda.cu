// The rows that count every score into bins or at thresholds.
#include "kernels/auc_row.h"
#include "kernels/fastap_row.h"
#include "kernels/histogram_row.h"
#include "kernels/rows_cuda.cuh"
#include "kernels/wilcoxon_row.h"

namespace rk {

RK_GALLERY_ROWS(FastApRow);
RK_GALLERY_ROWS(AucHardRow);
RK_GALLERY_ROWS(AucAllRow);
RK_GALLERY_ROWS(HistogramRow);
RK_GALLERY_ROWS(WilcoxonRow);

}  // namespace rk
