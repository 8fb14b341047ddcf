#include "retrieval/passes/descending_sort.h"

#include "kernels/descending_key.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>

namespace rk {

void DescendingSort::operator()(std::span<float> scores) {
  if (std::ssize(scores) < kLong) {
    std::sort(scores.begin(), scores.end(), std::greater<>());
    return;
  }
  const std::size_t n = scores.size();
  given_.assign(scores.begin(), scores.end());
  counts_.resize(static_cast<std::size_t>(radix_counts(1)));
  for (Half& half : halves_) {
    half.keys.resize(n);
    half.items.resize(n);
  }
  for (std::size_t i = 0; i < n; ++i) halves_[0].keys[i] = descending_key(given_[i]);
  std::iota(halves_[0].items.begin(), halves_[0].items.end(), 0U);
  const auto sorted =
      radix_sort(1, std::ssize(scores), halves_[0].view(), halves_[1].view(), counts_.data());
  for (std::size_t i = 0; i < n; ++i) scores[i] = given_[sorted.items[i]];
}

}  // namespace rk
