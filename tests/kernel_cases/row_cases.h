// The rows of kernels/cuda/row_lists.h, each with the parameters that tests use. One list for
// all tests of rows: teams of threads under ThreadSanitizer (tests/race), float on the CPU and on a
// GPU (tests/cuda). A case is named after its kernel's loss, with a suffix for a setting.
// tests/losses/registry_test.cpp compares the list with the kernels and the losses.
#pragma once

#include "kernels/cuda/row_lists.h"

#include <cstdint>
#include <vector>

namespace rk {

// What the pass over all rows computes for the second kernel of a row: slopes, at least 24 and at
// least [2 rows] of them, and a table for auc_ba.
template <class S> struct BetweenPasses {
  const S* slopes = nullptr;
  AucGradient<S> auc;
};

// Whether Row is a row of proxies (kernels/rows/proxy_batch.h) instead of a gallery.
template <class Row> inline constexpr bool kRowOfProxies = requires { Row::kRowIsClass; };

// Whether queries without positives count: counts() of the loss is true of every query.
template <class Row> inline constexpr bool kCountsEveryQuery = false;
template <class S> inline constexpr bool kCountsEveryQuery<AucAllRow<S>> = true;
template <class S> inline constexpr bool kCountsEveryQuery<ContrastiveRow<S>> = true;
template <class S> inline constexpr bool kCountsEveryQuery<HistogramRow<S>> = true;
template <class S> inline constexpr bool kCountsEveryQuery<SupApRow<S>> = true;

// Labels and shares for `rows` rows of proxies: every fourth class has items, the others none.
template <class S, class Row> struct ProxyItems {
  ProxyItems(int rows, int columns) {
    const int items = Row::kRowIsClass ? columns : rows;
    const int classes = Row::kRowIsClass ? rows : columns;
    const int present = (classes + 3) / 4;
    for (int i = 0; i < items; ++i) labels.push_back(i % present * 4);
    for (int c = 0; c < classes; ++c) {
      shares.push_back(c % 4 == 0 ? 1 / static_cast<S>(present) : S(0));
    }
  }
  std::vector<std::int64_t> labels;  // [items]
  std::vector<S> shares;             // [classes]
};

// How many numbers Row::measure writes per row; 0 if Row has no measure.
template <class Row> int row_stats(const typename Row::Params& params) {
  if constexpr (requires { Row::stats(params); }) return Row::stats(params);
  return 0;
}

// Calls visit.operator()<Row>(name, make) for every case. make(BetweenPasses<S>) returns
// Row<S>::Params, with the same numbers for S = float and double.
template <class Visit> void for_each_row_case(const Visit& visit) {
#define RK_ROW_CASE(Row, name, ...)                                                              \
  visit.template operator()<Row>(name,                                                           \
                                 []<class S>([[maybe_unused]] const BetweenPasses<S>& between) { \
                                   using Params = typename Row<S>::Params;                       \
                                   return Params __VA_ARGS__;                                    \
                                 })
  RK_ROW_CASE(FastApRow, "fastap", {.bins = 10});
  RK_ROW_CASE(SmoothApRow, "smooth_ap", {.tau = S(0.05)});
  RK_ROW_CASE(SmoothApRow, "smooth_ap_with_self", {.tau = S(0.05), .with_self = true});
  RK_ROW_CASE(PnpRow, "pnp_o", {.variant = Pnp::kO, .tau = S(0.05)});
  RK_ROW_CASE(PnpRow, "pnp_iu", {.variant = Pnp::kIu, .tau = S(0.05)});
  RK_ROW_CASE(PnpRow, "pnp_ib", {.variant = Pnp::kIb, .tau = S(0.05)});
  RK_ROW_CASE(PnpRow, "pnp_ds", {.variant = Pnp::kDs, .tau = S(0.05)});
  RK_ROW_CASE(PnpRow, "pnp_dq", {.variant = Pnp::kDq, .tau = S(0.05)});
  RK_ROW_CASE(RamboRow, "rambo_ap", {.variant = Rambo::kAp, .lambda = 0.2});
  RK_ROW_CASE(RamboRow, "rambo_recall",
              {.variant = Rambo::kRecallLog, .mean = false, .lambda = 0.2});
  RK_ROW_CASE(RecallAtKRow, "recall_at_k", {.tau = S(0.05)});
  RK_ROW_CASE(SupApRow, "sup_ap",
              {.tau = S(0.05),
               .offset = S(1.4),
               .with_self = true,
               .contrastive = {.per_positive = S(0.1)}});
  RK_ROW_CASE(ContrastiveRow, "contrastive", {.per_positive = S(0.1), .per_negative = S(0.02)});
  RK_ROW_CASE(MultiSimilarityRow, "multi_similarity", {});
  RK_ROW_CASE(TripletHardRow, "triplet_bh", {});
  RK_ROW_CASE(TripletAllRow, "triplet_ba", {{}, S(0.01)});
  RK_ROW_CASE(AucHardRow, "auc_bh", {.r = 7, .step = S(0.25), .count = 9, .slope = between.slopes});
  RK_ROW_CASE(AucAllRow, "auc_ba", {{.r = 7, .step = S(0.25), .count = 9}, between.auc});
  RK_ROW_CASE(WilcoxonRow, "wilcoxon_bh", {.slopes = between.slopes});
  RK_ROW_CASE(HistogramRow, "histogram",
              {.bins = 11,
               .rise = between.slopes,
               .negative_rise = between.slopes == nullptr ? nullptr : between.slopes + 12});
  RK_ROW_CASE(SoftmaxRow, "nsl", {.scale = 9});
  RK_ROW_CASE(ProxyAnchorRow, "proxy_anchor", {.margin = S(0.125), .alpha = 8});
#undef RK_ROW_CASE
}

}  // namespace rk
