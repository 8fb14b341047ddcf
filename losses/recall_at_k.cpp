// Recall@k for k = 1, 2, 4, 8, 16, Patel et al. 2022 (formula: kernels/rows/recall_at_k_row.h).
// Mean over queries with a positive. compat=official: the query itself takes a place in every rank;
// k is capped at the batch size.
#include "kernels/rows/recall_at_k_row.h"
#include "losses/entries.h"
#include "losses/rows/row_loss.h"

#include <algorithm>

namespace rk {
namespace {

template <class S> struct RecallAtK : MeanOverQueries<S> {
  using Row = RecallAtKRow<S>;
  typename Row::Params params;
  void begin(const BatchIndex& index) override {
    if (params.with_self) params.largest_k = index.rows();
  }
};

template <class S> RecallAtK<S> make_recall_at_k(const LossValues& values) {
  RecallAtK<S> formula;
  formula.params.tau = static_cast<S>(values.number("tau"));
  formula.params.tau_k = static_cast<S>(values.number("tau_k"));
  formula.params.with_self = values.is("compat", "official");
  return formula;
}

}  // namespace

LossEntry recall_at_k_entry() {
  return {.name = "recall_at_k",
          .kind = LossKind::kEmbeddings,
          .summary = "recall at 1, 2, 4, 8 and 16, ranks and counts relaxed by sigmoids",
          .paper =
              "Patel, Tolias, Matas: Recall@k Surrogate Loss with Large Batches and Similarity "
              "Mixup, CVPR 2022",
          .parameters = {number_parameter("tau", "0.01", 1e-4, 100, "temperature of the ranks"),
                         number_parameter("tau_k", "1", 1e-3, 1e3, "temperature of the counts"),
                         compat_parameter(
                             "the query takes a place in every rank; k is at most the batch")},
          .make_float = make_row_loss<float, make_recall_at_k<float>>,
          .make_double = make_row_loss<double, make_recall_at_k<double>>,
          .sigmoids = [](double columns, double positives) {
            return std::max(1.0, 2 * positives - 2) * columns;
          }};
}

}  // namespace rk
