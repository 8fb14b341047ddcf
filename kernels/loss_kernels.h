// The kernels of the losses beside their rows that launch() is compiled for: X(kernel) for each.
#pragma once

#include "kernels/auc_row.h"
#include "kernels/auc_table.h"
#include "kernels/contrastive_row.h"
#include "kernels/finish_rows.h"
#include "kernels/histogram_row.h"
#include "kernels/proxy_check_block.h"
#include "kernels/sup_ap_row.h"
#include "kernels/triplet_row.h"
#include "kernels/wilcoxon_pairs.h"

#define RK_LOSS_KERNELS(X)              \
  X(FinishRows<AucAllRow<float>>);      \
  X(FinishRows<AucHardRow<float>>);     \
  X(FinishRows<ContrastiveRow<float>>); \
  X(FinishRows<HistogramRow<float>>);   \
  X(FinishRows<SupApRow<float>>);       \
  X(FinishRows<TripletAllRow<float>>);  \
  X(SumLosses);                         \
  X(FindBadProxy);                      \
  X(FillAucTable);                      \
  X(GatherHardestPairs);                \
  X(MeetHardestPairs);                  \
  X(SumHardestPairs)
