// What rows do where their formula leaves it open: of equally hard pairs the lowest row counts, and
// at a kink the derivative is the one that docs/losses.md names. References have only values there.
#include "engine/base/random.h"
#include "kernels/rows/contrastive_row.h"
#include "kernels/rows/hardest_pair.h"
#include "kernels/rows/triplet_row.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace rk {
namespace {

// The query's row: column 0 is its own.
struct Row {
  std::vector<double> scores;
  std::vector<std::int32_t> classes, members;
  std::vector<std::int64_t> images;

  Row(std::vector<double> values, std::vector<std::int32_t> of)
      : scores(std::move(values)),
        classes(std::move(of)),
        columns_(static_cast<int>(scores.size())) {
    for (int k = 0; k < columns_; ++k) {
      if (classes[at(k)] == classes[0]) members.push_back(k);
    }
    scores.resize(at(pad(columns_)), std::numeric_limits<double>::quiet_NaN());
    classes.resize(at(pad(columns_)), -1);
  }
  GalleryRow<double> view() const {
    GalleryRow<double> in;
    in.scores = scores.data();
    in.columns = columns_;
    in.classes = classes.data();
    in.members = members.data();
    in.member_count = static_cast<int>(members.size());
    in.image_ids = images.empty() ? nullptr : images.data();
    return in;
  }
  template <class Kernel>
  std::vector<double> gradient(const typename Kernel::Params& params) const {
    const GalleryRow<double> in = view();
    std::vector<double> grad(scores.size(), std::numeric_limits<double>::quiet_NaN());
    double loss = 0;
    const Buffer scratch(
        static_cast<std::size_t>(scratch_of<Kernel>(params, columns_, in.member_count)));
    Kernel::row(SerialTeam(), params, in, grad.data(), &loss, scratch.data());
    grad.resize(at(columns_));
    return grad;
  }

 private:
  int columns_;
};

TEST(HardestPair, OfEquallyHardOnesTheLowestRowCounts) {
  for (const std::uint64_t seed : random_seeds(500)) {
    CounterRandom random(seed, 1, 0);
    const auto columns = static_cast<std::size_t>(4 + random.below(70));
    std::vector<double> scores;
    std::vector<std::int32_t> classes = {0, 0, 1};  // a positive and a negative at least
    while (classes.size() < columns) classes.push_back(static_cast<std::int32_t>(random.below(3)));
    for (std::size_t k = 0; k < columns; ++k) {
      scores.push_back(0.25 * static_cast<double>(random.below(4)));
    }
    Row row(scores, classes);
    for (std::size_t k = 0; k < columns; ++k) {  // some columns show the query's image
      row.images.push_back(k > 2 && random.below(8) == 0 ? 0 : static_cast<std::int64_t>(k));
    }
    int positive = -1, negative = -1;
    for (std::size_t k = 1; k < columns; ++k) {
      const auto column = static_cast<int>(k);
      if (classes[k] == 0 && row.images[k] != 0) {
        if (positive < 0 || scores[k] < scores[at(positive)]) positive = column;
      } else if (classes[k] != 0) {
        if (negative < 0 || scores[k] > scores[at(negative)]) negative = column;
      }
    }
    std::vector<int> index(row.members.size());
    const HardestPair<double> pair = hardest_pair(SerialTeam(), row.view(), index.data());
    ASSERT_EQ(pair.positive_column, positive) << "seed " << seed;
    ASSERT_EQ(pair.negative_column, negative) << "seed " << seed;
  }
}

// Squared distances of these scores, and their sums with the margin, are exact.
TEST(Kinks, AHingeOfZeroHasNoSlope) {
  TripletParams<double> params{.margin = 0.5, .squared = true};
  const Row row({1, 0.5, 0.25}, {0, 0, 1});  // h = 0.5 + 1 - 1.5
  EXPECT_EQ(row.gradient<TripletHardRow<double>>(params), std::vector<double>(3, 0.0));
  EXPECT_EQ(row.gradient<TripletAllRow<double>>({params, 1.0}), std::vector<double>(3, 0.0));
  params.margin = 0.75;
  const std::vector<double> pulls = {0, -2, 2};
  EXPECT_EQ(row.gradient<TripletHardRow<double>>(params), pulls);
  EXPECT_EQ(row.gradient<TripletAllRow<double>>({params, 1.0}), pulls);
}

TEST(Kinks, ADistanceOfZeroHasNoSlope) {
  for (const bool squared : {true, false}) {
    const TripletParams<double> params{.margin = 3, .squared = squared};
    for (const double score : {1.0, 1.125}) {
      const Row row({1, score, 0.5}, {0, 0, 1});
      const std::vector<double> pushes = {0, 0, squared ? 2.0 : 1.0};  // d = 1: -dd/ds = 1/d
      EXPECT_EQ(row.gradient<TripletHardRow<double>>(params), pushes) << squared << score;
      EXPECT_EQ(row.gradient<TripletAllRow<double>>({params, 1.0}), pushes) << squared << score;
    }
  }
}

TEST(Kinks, PairsAtTheContrastiveMarginsHaveNoSlope) {
  const ContrastiveRow<double>::Params params{
      .pos = 0.75, .neg = 0.5, .per_positive = 1, .per_negative = 1};
  const Row at_margins({1, 0.75, 0.5}, {0, 0, 1});
  EXPECT_EQ(at_margins.gradient<ContrastiveRow<double>>(params), std::vector<double>(3, 0.0));
  const Row beyond({1, 0.625, 0.625}, {0, 0, 1});
  EXPECT_EQ(beyond.gradient<ContrastiveRow<double>>(params), (std::vector<double>{0, -1, 1}));
}

}  // namespace
}  // namespace rk
