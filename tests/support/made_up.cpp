#include "tests/support/made_up.h"

#include <cmath>

namespace rk::made_up {
namespace {

constexpr std::int64_t kBigLabel = std::int64_t{1} << 41;

std::vector<float> to_float(const std::vector<double>& values) {
  return std::vector<float>(values.begin(), values.end());
}

void round_to_float(std::vector<double>& values) {
  for (double& v : values) v = static_cast<double>(static_cast<float>(v));
}

}  // namespace

Wanted sizes(LossKind kind, std::uint64_t seed) {
  CounterRandom random(seed, 1, 0);
  Wanted wanted;
  wanted.rows = 2 + random.below(23);
  wanted.dim = 2 + random.below(8);  // in one dimension every score is a kink: 1 or -1
  wanted.classes = 1 + random.below(wanted.rows);
  if (kind == LossKind::kEmbeddings) {
    wanted.memory = random.below(3) == 0 ? random.below(20) : 0;
    wanted.image_ids = random.below(3) == 0;
  }
  return wanted;
}

LossData<double> data(LossKind kind, const Wanted& wanted, std::uint64_t seed) {
  CounterRandom random(seed, 2, 0);
  LossData<double> out;
  out.rows = wanted.rows;
  if (kind == LossKind::kScores) {
    out.classes = wanted.classes;
    for (std::int64_t i = 0; i < wanted.rows * wanted.classes; ++i) {
      out.scores.push_back(random.uniform(-1, 1));
      out.targets.push_back(random.below(4) == 0 ? 1 : 0);
    }
    round_to_float(out.scores);
    return out;
  }
  out.dim = wanted.dim;
  out.memory = wanted.memory;
  out.classes = kind == LossKind::kProxies ? wanted.classes : 0;
  std::vector<double> centres;
  for (std::int64_t i = 0; i < wanted.classes * wanted.dim; ++i) centres.push_back(random.normal());
  for (std::int64_t i = 0; i < wanted.rows + wanted.memory; ++i) {
    const std::int64_t label = random.below(wanted.classes);
    const double spread = random.uniform(0.2, 1.5);
    std::vector<double> e;
    double square = 0;
    for (std::int64_t d = 0; d < wanted.dim; ++d) {
      e.push_back(centres[static_cast<std::size_t>(label * wanted.dim + d)] +
                  spread * random.normal());
      square += e.back() * e.back();
    }
    for (double& x : e) x /= std::sqrt(square);
    const bool in_batch = i < wanted.rows;
    auto& rows = in_batch ? out.embeddings : out.memory_embeddings;
    rows.insert(rows.end(), e.begin(), e.end());
    const std::int64_t written = kind == LossKind::kProxies ? label : kBigLabel - 3 * label;
    (in_batch ? out.labels : out.memory_labels).push_back(written);
    if (wanted.image_ids) {
      // An item may show the image of an earlier one of its class.
      std::int64_t image = i;
      for (std::int64_t j = 0; j < i; ++j) {
        const bool same =
            (j < wanted.rows
                 ? out.labels[static_cast<std::size_t>(j)]
                 : out.memory_labels[static_cast<std::size_t>(j - wanted.rows)]) == written;
        if (same && random.below(4) == 0) image = j;
      }
      (in_batch ? out.image_ids : out.memory_image_ids).push_back(image);
    }
  }
  if (kind == LossKind::kProxies) out.proxies = std::move(centres);
  round_to_float(out.embeddings);
  round_to_float(out.memory_embeddings);
  round_to_float(out.proxies);
  return out;
}

LossData<double> tied(LossKind kind, const Wanted& wanted, std::uint64_t seed) {
  constexpr std::int64_t kDim = 16;
  Wanted exact = wanted;
  exact.dim = kDim;
  LossData<double> out = data(kind, exact, seed);
  CounterRandom random(seed, 3, 0);
  for (double& s : out.scores) s = static_cast<double>(random.below(9)) / 8 - 0.5;
  if (kind == LossKind::kScores) return out;
  // Each coordinate has the sign that its class has there, flipped one time in ten.
  const auto sign_of = [&](std::vector<double>& rows, const std::vector<std::int64_t>& labels) {
    for (std::size_t at = 0; at < rows.size(); ++at) {
      const std::int64_t label = labels[at / kDim];
      CounterRandom of_class(seed, 4, static_cast<std::uint64_t>(label * kDim) + at % kDim);
      const bool turned = random.below(10) == 0;
      rows[at] = (of_class.below(2) == 0) != turned ? 0.25 : -0.25;
    }
  };
  sign_of(out.embeddings, out.labels);
  sign_of(out.memory_embeddings, out.memory_labels);
  return out;
}

LossData<float> as_float(const LossData<double>& data) {
  LossData<float> out;
  out.rows = data.rows;
  out.dim = data.dim;
  out.memory = data.memory;
  out.classes = data.classes;
  out.embeddings = to_float(data.embeddings);
  out.labels = data.labels;
  out.image_ids = data.image_ids;
  out.memory_embeddings = to_float(data.memory_embeddings);
  out.memory_labels = data.memory_labels;
  out.memory_image_ids = data.memory_image_ids;
  out.proxies = to_float(data.proxies);
  out.scores = to_float(data.scores);
  out.targets = data.targets;
  return out;
}

}  // namespace rk::made_up
