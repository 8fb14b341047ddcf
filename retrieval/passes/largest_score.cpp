#include "retrieval/passes/largest_score.h"

#include "engine/base/error.h"
#include "engine/base/integers.h"
#include "engine/base/parallel.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace rk {
namespace {

constexpr double kLargestScore = 1e38;  // partial sums of a product within it cannot overflow
// Below 2^-126 float32 loses digits: scores of this size, and down to a millionth of it, keep all.
constexpr double kSmallestScore = 1e-30;

// Lengths of the longest row and of the next one; 0 if there is none.
struct LongRows {
  double longest = 0, second = 0;
};

LongRows long_rows(const Context& context, const EmbeddingView& view, const char* what) {
  std::vector<double> squares(static_cast<std::size_t>(view.count));
  parallel_for(context.threads(), view.count, [&](std::int64_t i, int) {
    const float* row = view.embeddings + i * view.dim;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t d = 0; d < view.dim; ++d) {
      sum += static_cast<double>(row[d]) * static_cast<double>(row[d]);
    }
    squares[at(i)] = sum;
  });
  LongRows out;
  for (std::int64_t i = 0; i < view.count; ++i) {
    const double square = squares[at(i)];
    if (!std::isfinite(square)) {
      fail<InputError>("{}: row {} holds a value that is not finite; embed it again", what, i);
    }
    out.second = std::max(out.second, std::min(out.longest, square));
    out.longest = std::max(out.longest, square);
  }
  return {std::sqrt(out.longest), std::sqrt(out.second)};
}

// The error names the side with the longer rows if scores are too large, with the shorter ones if
// too small.
double within_float32(double score, double own, double others) {
  if (score > kLargestScore) {
    fail<InputError>(
        "{}: inner products up to {:.1e} overflow float32; scale its rows down, or use --normalize",
        others > own ? "gallery" : "embeddings", score);
  }
  if (score > 0 && score < kSmallestScore) {
    fail<InputError>(
        "{}: inner products of at most {:.1e} are too small for float32; scale its rows up, or use "
        "--normalize",
        others < own ? "gallery" : "embeddings", score);
  }
  return score;
}

}  // namespace

double largest_score(const Context& context, const EmbeddingView& queries,
                     const EmbeddingView* gallery) {
  const LongRows own = long_rows(context, queries, "embeddings");
  if (gallery != nullptr) {
    const double others = long_rows(context, *gallery, "gallery").longest;
    return within_float32(own.longest * others, own.longest, others);
  }
  within_float32(own.longest * own.longest, own.longest, own.longest);
  return own.longest * own.second;
}

double largest_score_of_any(const Context& context, const EmbeddingView& set,
                            const EmbeddingView* more) {
  const double own = long_rows(context, set, "embeddings").longest;
  const double others = more != nullptr ? long_rows(context, *more, "gallery").longest : own;
  const double longest = std::max(own, others);
  return within_float32(longest * longest, own, others);
}

}  // namespace rk
