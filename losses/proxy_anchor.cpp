// Proxy anchor: the mean over the classes of the batch of their positives' part, plus the mean over
// all classes of their negatives' part (losses/rows/proxy_loss.h;
// kernels/rows/proxy_anchor_row.h). Source: Kim et al. 2020, eq. 4. Proxies start normal with
// variance 2/C, kaiming_normal_(mode="fan_out") in the authors' code.
#include "kernels/rows/proxy_anchor_row.h"
#include "losses/entries.h"
#include "losses/rows/proxy_loss.h"

#include <cmath>

namespace rk {
namespace {

template <class S>
typename ProxyAnchorRow<S>::Params proxy_anchor_params(const LossValues& values) {
  return {.margin = static_cast<S>(values.number("margin")),
          .alpha = static_cast<S>(values.number("alpha"))};
}

Initial proxy_anchor_start(std::int64_t classes, std::int64_t) {
  return {Initial::Kind::kNormal, std::sqrt(2 / static_cast<double>(classes))};
}

}  // namespace

LossEntry proxy_anchor_entry() {
  return {
      .name = "proxy_anchor",
      .kind = LossKind::kProxies,
      .summary = "soft hardest items of every class proxy",
      .paper = "Kim, Kim, Cho, Kwak: Proxy Anchor Loss for Deep Metric Learning, CVPR 2020; eq. 4",
      .parameters = {number_parameter("margin", "0.1", -2, 2, "margin of the similarities"),
                     number_parameter("alpha", "32", 1e-3, 1e4, "factor of the similarities")},
      .make_float = make_proxy_loss<float, ProxyAnchorRow, proxy_anchor_params<float>>,
      .make_double = make_proxy_loss<double, ProxyAnchorRow, proxy_anchor_params<double>>,
      .proxy_start = proxy_anchor_start};
}

}  // namespace rk
