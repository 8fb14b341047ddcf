// The kernels of the losses beside their rows that launch() is compiled for: X(kernel) for each.
#pragma once

#include "kernels/blocks/matrix_block.h"
#include "kernels/blocks/proxy_check_block.h"
#include "kernels/rows/auc_row.h"
#include "kernels/rows/auc_table.h"
#include "kernels/rows/contrastive_row.h"
#include "kernels/rows/finish_rows.h"
#include "kernels/rows/histogram_row.h"
#include "kernels/rows/sup_ap_row.h"
#include "kernels/rows/triplet_row.h"
#include "kernels/rows/wilcoxon_hardest_pairs.h"

#define RK_LOSS_KERNELS(X)              \
  X(FinishRows<AucAllRow<float>>);      \
  X(FinishRows<AucHardRow<float>>);     \
  X(FinishRows<ContrastiveRow<float>>); \
  X(FinishRows<HistogramRow<float>>);   \
  X(FinishRows<SupApRow<float>>);       \
  X(FinishRows<TripletAllRow<float>>);  \
  X(SumLosses<float>);                  \
  X(ColumnSums<float, double>);         \
  X(FindBadProxy);                      \
  X(FillAucTable<float>);               \
  X(AddTranspose);                      \
  X(GatherHardestPairs<float>);         \
  X(CompareHardestPairs<float>);        \
  X(SumHardestPairs<float>)
