// Contrastive loss on similarities (formula: kernels/rows/contrastive_row.h): the mean over
// positive pairs below `pos` plus the mean over negative pairs above `neg`, both over ordered
// pairs; 0 if no query has a positive.
#include "kernels/rows/contrastive_row.h"
#include "losses/entries.h"
#include "losses/rows/row_loss.h"

namespace rk {
namespace {

template <class S> struct Contrastive : MeanOverQueries<S> {
  using Row = ContrastiveRow<S>;
  typename Row::Params params;
  // Pairs count, whether or not their query has a positive.
  bool counts(const BatchIndex&, int) const override { return true; }
  S grad_weight(const BatchIndex&) const override { return 1; }
};

template <class S> Contrastive<S> make_contrastive(const LossValues& values) {
  Contrastive<S> formula;
  formula.params.pos = static_cast<S>(values.number("pos"));
  formula.params.neg = static_cast<S>(values.number("neg"));
  return formula;
}

}  // namespace

LossEntry contrastive_entry() {
  return {.name = "contrastive",
          .kind = LossKind::kEmbeddings,
          .summary = "positive pairs above a similarity, negative pairs below another",
          .paper =
              "Hadsell, Chopra, LeCun: Dimensionality Reduction by Learning an Invariant "
              "Mapping, CVPR 2006; on cosine similarities",
          .parameters = {number_parameter("pos", "0.9", -2, 2, "similarity positives should reach"),
                         number_parameter("neg", "0.4", -2, 2, "similarity negatives may have")},
          .make_float = make_row_loss<float, make_contrastive<float>>,
          .make_double = make_row_loss<double, make_contrastive<double>>};
}

}  // namespace rk
