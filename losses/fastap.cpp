// FastAP, Cakir et al. 2019: average precision relaxed by soft histograms of the distances
// (formula: kernels/rows/fastap_row.h). Value: 1 - mean over queries with a positive.
// compat=official: the authors' PyTorch backward, V/2 times the gradient, V = queries with a
// positive.
#include "kernels/rows/fastap_row.h"
#include "losses/entries.h"
#include "losses/rows/row_loss.h"

namespace rk {
namespace {

template <class S> struct FastAp : MeanOverQueries<S> {
  using Row = FastApRow<S>;
  typename Row::Params params;
  bool official = false;
  S grad_weight(const BatchIndex& index) const override {
    return official ? S(0.5) : MeanOverQueries<S>::grad_weight(index);
  }
};

template <class S> FastAp<S> make_fastap(const LossValues& values) {
  FastAp<S> formula;
  formula.params.bins = values.integer("bins");
  formula.official = values.is("compat", "official");
  return formula;
}

}  // namespace

LossEntry fastap_entry() {
  return {.name = "fastap",
          .kind = LossKind::kEmbeddings,
          .summary = "average precision, through soft histograms of the distances",
          .paper =
              "Cakir, He, Xia, Kulis, Sclaroff: Deep Metric Learning to Rank, CVPR 2019; eq. 14, "
              "15-16, soft bins eq. 22-23",
          .parameters = {integer_parameter("bins", 10, 1, 4096, "bins L over the distances [0, 4]"),
                         compat_parameter("the authors' backward: V/2 times the gradient")},
          .make_float = make_row_loss<float, make_fastap<float>>,
          .make_double = make_row_loss<double, make_fastap<double>>};
}

}  // namespace rk
