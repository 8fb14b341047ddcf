// The rows that GalleryRows (kernels/rows_cuda.h) is compiled for, X(row) for each: three lists, a
// .cu each, so that they compile side by side.
#pragma once

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

// Those that count every score into bins or at thresholds.
#define RK_HISTOGRAM_ROWS(X) \
  X(FastApRow);              \
  X(AucHardRow);             \
  X(AucAllRow);              \
  X(HistogramRow);           \
  X(WilcoxonRow)

// Those of losses on pairs and triplets.
#define RK_PAIR_ROWS(X)  \
  X(ContrastiveRow);     \
  X(MultiSimilarityRow); \
  X(TripletHardRow);     \
  X(TripletAllRow)

// Those whose cost is a sigmoid or a comparison for every positive and column.
#define RK_RANK_ROWS(X) \
  X(SmoothApRow);       \
  X(PnpRow);            \
  X(RamboRow);          \
  X(RecallAtKRow);      \
  X(SupApRow)
