// Smooth-AP, Brown et al. 2020: ranks relaxed by sigmoids (formula: kernels/rows/smooth_ap_row.h).
// Value: mean over queries with a positive. compat=official: the query is one of its own positives.
#include "kernels/rows/smooth_ap_row.h"
#include "losses/entries.h"
#include "losses/rows/row_loss.h"

namespace rk {
namespace {

template <class S> struct SmoothAp : MeanOverQueries<S> {
  using Row = SmoothApRow<S>;
  typename Row::Params params;
};

template <class S> SmoothAp<S> make_smooth_ap(const LossValues& values) {
  SmoothAp<S> formula;
  formula.params.tau = static_cast<S>(values.number("tau"));
  formula.params.with_self = values.is("compat", "official");
  return formula;
}

}  // namespace

LossEntry smooth_ap_entry() {
  return {.name = "smooth_ap",
          .kind = LossKind::kEmbeddings,
          .summary = "average precision, ranks relaxed by sigmoids",
          .paper = "Brown, Xie, Kalogeiton, Zisserman: Smooth-AP, ECCV 2020; eq. 7-8",
          .parameters = {number_parameter("tau", "0.01", 1e-4, 100, "temperature of the sigmoids"),
                         compat_parameter("the query is one of its own positives")},
          .make_float = make_row_loss<float, make_smooth_ap<float>>,
          .make_double = make_row_loss<double, make_smooth_ap<double>>,
          .sigmoids = [](double columns, double positives) { return columns * positives; }};
}

}  // namespace rk
