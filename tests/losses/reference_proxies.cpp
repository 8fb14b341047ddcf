// Losses with class proxies.
#include "engine/base/integers.h"
#include "tests/losses/reference.h"

#include <cmath>

namespace rk::reference {
namespace {

// e_i . w_c / |w_c|
double score(const LossData<double>& data, std::int64_t i, std::int64_t c) {
  double along = 0;
  double square = 0;
  for (std::int64_t d = 0; d < data.dim; ++d) {
    const double w = data.proxies[at(c * data.dim + d)];
    along += w * data.embeddings[at(i * data.dim + d)];
    square += w * w;
  }
  return along / std::sqrt(square);
}

Value nsl(const LossData<double>& data, const LossValues& values) {
  const double scale = values.number("scale");
  Value out;
  out.valid = data.rows;
  for (std::int64_t i = 0; i < data.rows; ++i) {
    double total = 0;
    for (std::int64_t c = 0; c < data.classes; ++c) total += std::exp(scale * score(data, i, c));
    const double own = score(data, i, data.labels[at(i)]);
    out.loss -= std::log(std::exp(scale * own) / total) / static_cast<double>(data.rows);
  }
  return out;
}

Value proxy_anchor(const LossData<double>& data, const LossValues& values) {
  const double margin = values.number("margin");
  const double alpha = values.number("alpha");
  Value out;
  out.valid = data.rows;
  double present = 0;
  double positive_loss = 0;
  for (std::int64_t c = 0; c < data.classes; ++c) {
    double positives = 0;
    double negatives = 0;
    bool any = false;
    for (std::int64_t i = 0; i < data.rows; ++i) {
      const double s = score(data, i, c);
      if (data.labels[at(i)] == c) {
        any = true;
        positives += std::exp(-alpha * (s - margin));
      } else {
        negatives += std::exp(alpha * (s + margin));
      }
    }
    present += any ? 1 : 0;
    positive_loss += std::log(1 + positives);
    out.loss += std::log(1 + negatives) / static_cast<double>(data.classes);
  }
  out.loss += positive_loss / present;
  return out;
}

const Registered nsl_reference({
    .specs = {"nsl", "nsl:scale=40"},
    .value = nsl,
    .term =
        [](const LossValues& values) {
          return LossTerm{values.number("scale"), 1, 0, 2};
        },
});
const Registered proxy_anchor_reference({
    .specs = {"proxy_anchor", "proxy_anchor:margin=0.3,alpha=8"},
    .value = proxy_anchor,
    .term =
        [](const LossValues& values) {
          return LossTerm{values.number("alpha"), 1, 0, 2};
        },
});

}  // namespace
}  // namespace rk::reference
