// The kernels of the losses beside their rows.
#include "kernels/auc_row.h"
#include "kernels/auc_table.h"
#include "kernels/contrastive_row.h"
#include "kernels/finish_rows.h"
#include "kernels/histogram_row.h"
#include "kernels/launch.cuh"
#include "kernels/sup_ap_row.h"
#include "kernels/triplet_row.h"
#include "kernels/wilcoxon_pairs.h"

namespace rk {

RK_LAUNCH(FinishRows<AucAllRow<float>>);
RK_LAUNCH(FinishRows<AucHardRow<float>>);
RK_LAUNCH(FinishRows<ContrastiveRow<float>>);
RK_LAUNCH(FinishRows<HistogramRow<float>>);
RK_LAUNCH(FinishRows<SupApRow<float>>);
RK_LAUNCH(FinishRows<TripletAllRow<float>>);
RK_LAUNCH(SumLosses);
RK_LAUNCH(FillAucTable);
RK_LAUNCH(GatherHardestPairs);
RK_LAUNCH(MeetHardestPairs);
RK_LAUNCH(SumHardestPairs);

}  // namespace rk
