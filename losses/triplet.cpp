// Triplet losses, Hermans et al. 2017 (formulas: kernels/rows/triplet_row.h). triplet_bh: mean over
// queries with a positive and a negative, zeros included. triplet_ba: mean over the triplets with a
// loss above 0.
#include "kernels/rows/triplet_row.h"
#include "losses/entries.h"
#include "losses/rows/row_loss.h"

namespace rk {
namespace {

template <class S> struct TripletHard : MeanOverQueriesWithNegative<S> {
  using Row = TripletHardRow<S>;
  typename Row::Params params;
};

template <class S> struct TripletAll : MeanOverQueriesWithNegative<S> {
  using Row = TripletAllRow<S>;
  typename Row::Params params;
  // The rows' sums are already shares of the mean.
  double value_weight(const BatchIndex&) const override { return 1; }
};

template <class S, template <class> class Formula>
Formula<S> make_triplet(const LossValues& values) {
  Formula<S> formula;
  formula.params.margin = static_cast<S>(values.number("margin"));
  formula.params.squared = values.integer("squared") == 1;
  formula.params.soft = values.integer("soft") == 1;
  return formula;
}

template <template <class> class Formula>
LossEntry entry(const std::string& name, const std::string& summary,
                const std::vector<std::string>& other_names) {
  return {
      .name = name,
      .kind = LossKind::kEmbeddings,
      .summary = summary,
      .paper =
          "Hermans, Beyer, Leibe: In Defense of the Triplet Loss for Person "
          "Re-Identification, 2017; eq. 5-7",
      .parameters = {unless("soft=1", number_parameter("margin", "0.3", -10, 10, "of the hinge")),
                     integer_parameter("squared", 0, 0, 1, "1: squared Euclidean distances"),
                     integer_parameter("soft", 0, 0, 1, "1: log(1 + exp(.)), without margin")},
      .make_float = make_row_loss<float, make_triplet<float, Formula>>,
      .make_double = make_row_loss<double, make_triplet<double, Formula>>,
      .scores_with_gradient = kScoresWithGradient<Formula<float>>,
      .other_names = other_names};
}

}  // namespace

LossEntry triplet_bh_entry() {
  return entry<TripletHard>("triplet_bh",
                            "a query's hardest negative beyond its hardest positive by a margin",
                            {"BatchHardTripletLoss"});
}

LossEntry triplet_ba_entry() {
  return entry<TripletAll>("triplet_ba", "every negative beyond every positive by a margin",
                           {"TripletMarginLoss"});
}

}  // namespace rk
