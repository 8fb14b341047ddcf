#include "losses/frame/finite.h"

#include "engine/base/error.h"
#include "engine/base/parallel.h"

#include <atomic>
#include <cmath>
#include <limits>

namespace rk {
namespace {

template <class S> bool all_within(S most, const S* values, std::int64_t count) {
  int bad = 0;
#pragma omp simd reduction(| : bad)
  for (std::int64_t k = 0; k < count; ++k) bad |= std::abs(values[k]) <= most ? 0 : 1;
  return bad == 0;
}

template <class S>
void check_rows(S most, const S* values, std::int64_t rows, std::int64_t dim, const char* what) {
  for (std::int64_t row = 0; row < rows; ++row) {
    if (all_within(most, values + row * dim, dim)) continue;
    fail_not_finite(what, row, static_cast<double>(most));
  }
}

}  // namespace

void fail_not_finite(const char* what, std::int64_t row, double most) {
  fail<InputError>("{}: row {} holds NaN, infinity or a number beyond {:.2g}; check what made it",
                   what, row, most);
}

template <class S> void check_finite(const Context& context, const LossInput<S>& input) {
  const auto check = [&](S most, const S* values, std::int64_t rows, std::int64_t dim,
                         const char* what) {
    if (values == nullptr) return;
    // Each thread only reports whether its rows are clean; check_rows then finds the first bad one.
    std::atomic<bool> clean = true;
    parallel_ranges(context.threads(), rows, [&](std::int64_t begin, std::int64_t end, int) {
      if (!all_within(most, values + begin * dim, (end - begin) * dim)) {
        clean.store(false, std::memory_order_relaxed);
      }
    });
    if (!clean) check_rows(most, values, rows, dim, what);
  };
  check(kLargestInput<S>, input.embeddings, input.rows, input.dim, "embeddings");
  check(kLargestInput<S>, input.memory_embeddings, input.memory, input.dim, "memory_embeddings");
  check(kLargestInput<S>, input.proxies, input.classes, input.dim, "proxies");
  // Scores are only ranked: no product of them can overflow.
  check(std::numeric_limits<S>::max(), input.scores, input.rows, input.classes, "scores");
}

template void check_finite(const Context&, const LossInput<float>&);
template void check_finite(const Context&, const LossInput<double>&);

}  // namespace rk
