// The rows that GalleryRows and ProxyRows (kernels/cuda/rows.h) are compiled for, X(row) for each:
// four lists, one .cu file each, so that they compile in parallel. The last is for ProxyRows.
#pragma once

#include "kernels/rows/auc_row.h"
#include "kernels/rows/contrastive_row.h"
#include "kernels/rows/fastap_row.h"
#include "kernels/rows/histogram_row.h"
#include "kernels/rows/multi_similarity_row.h"
#include "kernels/rows/pnp_row.h"
#include "kernels/rows/proxy_anchor_row.h"
#include "kernels/rows/rambo_row.h"
#include "kernels/rows/recall_at_k_row.h"
#include "kernels/rows/smooth_ap_row.h"
#include "kernels/rows/softmax_row.h"
#include "kernels/rows/sup_ap_row.h"
#include "kernels/rows/triplet_row.h"
#include "kernels/rows/wilcoxon_row.h"

// Rows that count scores into bins or at thresholds, and wilcoxon_bh.
#define RK_HISTOGRAM_ROWS(X) \
  X(FastApRow);              \
  X(AucHardRow);             \
  X(AucAllRow);              \
  X(HistogramRow);           \
  X(WilcoxonRow)

// Rows of losses on pairs and triplets.
#define RK_PAIR_ROWS(X)  \
  X(ContrastiveRow);     \
  X(MultiSimilarityRow); \
  X(TripletHardRow);     \
  X(TripletAllRow)

// Rows that cost a sigmoid or a comparison for every positive and column.
#define RK_RANK_ROWS(X) \
  X(SmoothApRow);       \
  X(PnpRow);            \
  X(RamboRow);          \
  X(RecallAtKRow);      \
  X(SupApRow)

// Rows of losses with proxies.
#define RK_PROXY_ROWS(X) \
  X(SoftmaxRow);         \
  X(ProxyAnchorRow)
