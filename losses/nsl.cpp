// Normalised softmax: the mean over the batch of cross-entropies with learnable class proxies
// (losses/rows/proxy_loss.h; kernels/rows/softmax_row.h). Source: Oi et al. 2021, eq. 3. Proxies
// start uniform in +-1/sqrt(D), as in the code of Zhai & Wu 2019, who introduced the loss.
#include "kernels/rows/softmax_row.h"
#include "losses/entries.h"
#include "losses/rows/proxy_loss.h"

#include <cmath>

namespace rk {
namespace {

template <class S> typename SoftmaxRow<S>::Params nsl_params(const LossValues& values) {
  return {.scale = static_cast<S>(values.number("scale"))};
}

Initial nsl_start(std::int64_t, std::int64_t dim) {
  return {Initial::Kind::kUniform, 1 / std::sqrt(static_cast<double>(dim))};
}

}  // namespace

LossEntry nsl_entry() {
  return {.name = "nsl",
          .kind = LossKind::kProxies,
          .summary = "normalised softmax over learnable class proxies",
          .paper =
              "Oi, Kawakami, Naemura: Analysis of Evaluation Metrics with the Distance between "
              "Positive Pairs and Negative Pairs in Deep Metric Learning, 2021; eq. 3",
          .parameters = {number_parameter("scale", "10", 1e-3, 1e4, "factor of the similarities")},
          .make_float = make_proxy_loss<float, SoftmaxRow, nsl_params<float>>,
          .make_double = make_proxy_loss<double, SoftmaxRow, nsl_params<double>>,
          .proxy_start = nsl_start,
          .other_names = {"NormalizedSoftmaxLoss", "ProxyNCALoss"}};
}

}  // namespace rk
