// One class of nearly all items and one of a single item: as many terms alike as there are items,
// which sums in float lose most of, and columns that are no negatives beside one that is.
#include "tools/inspect/normalized_loss.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rk {
namespace {

// Three queries of a class of `items` copies, and one alone at similarity `near` to them.
template <class S> LossData<S> copies_and_one(std::int64_t items, double near) {
  const std::vector<S> copy = {1, 0};
  const std::vector<S> other = {static_cast<S>(near), static_cast<S>(std::sqrt(1 - near * near))};
  LossData<S> data;
  data.dim = 2;
  data.rows = 4;
  for (int i = 0; i < 3; ++i)
    data.embeddings.insert(data.embeddings.end(), copy.begin(), copy.end());
  data.embeddings.insert(data.embeddings.end(), other.begin(), other.end());
  data.labels = {0, 0, 0, 1};
  data.memory = items - 3;
  for (std::int64_t i = 0; i < data.memory; ++i) {
    data.memory_embeddings.insert(data.memory_embeddings.end(), copy.begin(), copy.end());
    data.memory_labels.push_back(0);
  }
  return data;
}

class Uneven : public testing::TestWithParam<const char*> {};

TEST_P(Uneven, FloatKeepsTheDigitsOfTheValue) {
  const LossSpec spec = parse_loss(GetParam());
  const Context context(2);
  for (const std::int64_t items : {500, 2998}) {
    for (const double near : {0.6, 0.8}) {
      const auto exact = copies_and_one<double>(items, near);
      const auto rounded = copies_and_one<float>(items, near);
      LossFunction<double> in_double(context, spec, exact.shape(), false);
      LossFunction<float> in_float(context, spec, rounded.shape(), false);
      const double expected = in_double(exact).loss, got = in_float(rounded).loss;
      ASSERT_GT(expected, 0);
      // What products in float32 are off by moves a loss of steep sigmoids by r or 1 / tau of it:
      // 42 roundings of 6e-8.
      EXPECT_NEAR(got, expected, 4e-6 * expected) << items << " items, " << near;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Losses, Uneven,
                         testing::Values("auc_ba", "pnp_o:tau=0.3", "pnp_iu:tau=1", "pnp_ds:tau=1",
                                         "triplet_ba:soft=1", "triplet_ba:margin=2",
                                         "smooth_ap:tau=1", "sup_ap"),
                         [](const testing::TestParamInfo<const char*>& of) {
                           std::string name = of.param;
                           std::erase_if(name, [](char c) { return std::isalnum(c) == 0; });
                           return name;
                         });

}  // namespace
}  // namespace rk
