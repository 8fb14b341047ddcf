// The charts of a report, from its numbers.
#pragma once

#include "retrieval/report/chart.h"
#include "retrieval/report/report.h"

#include <string>
#include <vector>

namespace rk {

// Histograms of the similarities of positive and of negative pairs, each of area 1: of the training
// sample, of the held-out set and of the report's set, for each run; all with the same axes.
std::vector<Chart> similarity_charts(const Report& report);

// R@k over k, up to the largest rank of a first hit; the ROC curve; precision over recall of pairs.
Chart recall_chart(const Report& report);
Chart roc_chart(const Report& report);
Chart precision_chart(const Report& report);

// Loss, R@1, MAP@R and JSD over the epochs of the runs that recorded them.
std::vector<Chart> learning_charts(const Report& report);

}  // namespace rk
