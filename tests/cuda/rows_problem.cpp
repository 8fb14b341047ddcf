#include "tests/cuda/rows_problem.h"

#include "engine/base/random.h"

#include <algorithm>
#include <cmath>

namespace rk {
namespace {

constexpr int kDim = 24;
// The large class, classes of 4, and one image alone in its class.
std::int32_t label_of(int column) {
  if (column == 100) return 1 + (RowsProblem::kColumns - RowsProblem::kLargeClass + 3) / 4;
  const int shuffled = column * 211 % RowsProblem::kColumns;
  if (shuffled < RowsProblem::kLargeClass) return 0;
  return 1 + (shuffled - RowsProblem::kLargeClass) / 4;
}

}  // namespace

RowsProblem::RowsProblem()
    : scores(static_cast<std::size_t>(kRows) * kStride, std::nanf("")),
      classes(static_cast<std::size_t>(pad(kColumns)), 0) {
  CounterRandom random(7, 0, 0);
  std::vector<double> e(static_cast<std::size_t>(kColumns) * kDim);
  for (int i = 0; i < kColumns; ++i) {
    const auto at = static_cast<std::size_t>(i);
    classes[at] = label_of(i);
    image_ids.push_back(i);
    double square = 0;
    for (int d = 0; d < kDim; ++d) {
      double& x = e[at * kDim + static_cast<std::size_t>(d)];
      x = random.uniform(-0.5, 0.5) + (d == classes[at] % kDim ? 0.7 : 0.0);
      square += x * x;
    }
    for (int d = 0; d < kDim; ++d) {
      e[at * kDim + static_cast<std::size_t>(d)] /= std::sqrt(square);
    }
  }
  std::vector<std::vector<std::int32_t>> by_class(
      static_cast<std::size_t>(1 + *std::max_element(classes.begin(), classes.end())));
  for (int i = 0; i < kColumns; ++i) {
    by_class[static_cast<std::size_t>(classes[static_cast<std::size_t>(i)])].push_back(i);
  }
  // In every sixth class the last item is the same image as the first: same vector, same identity.
  for (std::size_t c = 0; c < by_class.size(); c += 6) {
    const auto first = static_cast<std::size_t>(by_class[c].front());
    const auto last = static_cast<std::size_t>(by_class[c].back());
    image_ids[last] = image_ids[first];
    std::copy_n(e.begin() + static_cast<std::ptrdiff_t>(first * kDim), kDim,
                e.begin() + static_cast<std::ptrdiff_t>(last * kDim));
  }
  std::vector<std::int32_t> first_of_class;
  for (const auto& list : by_class) {
    first_of_class.push_back(static_cast<std::int32_t>(members.size()));
    members.insert(members.end(), list.begin(), list.end());
  }
  for (int i = 0; i < kRows; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const auto own = static_cast<std::size_t>(classes[at]);
    first_members.push_back(first_of_class[own]);
    member_counts.push_back(static_cast<std::int32_t>(by_class[own].size()));
    const bool positive = std::any_of(by_class[own].begin(), by_class[own].end(), [&](int j) {
      return image_ids[static_cast<std::size_t>(j)] != image_ids[at];
    });
    counted.push_back(positive ? 1 : 0);
    for (int j = 0; j < kColumns; ++j) {
      double s = 0;
      for (std::size_t d = 0; d < kDim; ++d) {
        s += e[at * kDim + d] * e[static_cast<std::size_t>(j) * kDim + d];
      }
      scores[at * kStride + static_cast<std::size_t>(j)] = static_cast<float>(s);
    }
  }
}

}  // namespace rk
