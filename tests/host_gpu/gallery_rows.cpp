// In place of kernels/histogram_rows_cuda.cu, pair_rows_cuda.cu and rank_rows_cuda.cu.
#include "kernels/auc_row.h"
#include "kernels/contrastive_row.h"
#include "kernels/fastap_row.h"
#include "kernels/histogram_row.h"
#include "kernels/multi_similarity_row.h"
#include "kernels/pnp_row.h"
#include "kernels/rambo_row.h"
#include "kernels/recall_at_k_row.h"
#include "kernels/smooth_ap_row.h"
#include "kernels/sup_ap_row.h"
#include "kernels/triplet_row.h"
#include "kernels/wilcoxon_row.h"
#include "tests/host_gpu/rows.h"

namespace rk {

RK_GALLERY_ROWS(AucAllRow);
RK_GALLERY_ROWS(AucHardRow);
RK_GALLERY_ROWS(ContrastiveRow);
RK_GALLERY_ROWS(FastApRow);
RK_GALLERY_ROWS(HistogramRow);
RK_GALLERY_ROWS(MultiSimilarityRow);
RK_GALLERY_ROWS(PnpRow);
RK_GALLERY_ROWS(RamboRow);
RK_GALLERY_ROWS(RecallAtKRow);
RK_GALLERY_ROWS(SmoothApRow);
RK_GALLERY_ROWS(SupApRow);
RK_GALLERY_ROWS(TripletAllRow);
RK_GALLERY_ROWS(TripletHardRow);
RK_GALLERY_ROWS(WilcoxonRow);

}  // namespace rk
