#include "losses/frame/similarity.h"

#include "engine/base/error.h"
#include "engine/base/parallel.h"
#include "kernels/team.h"
#include "kernels/transpose.h"
#include "losses/frame/matrix_product.h"
#include "losses/frame/upper_tiles.h"

#include <cmath>
#include <limits>
#include <type_traits>

namespace rk {
namespace {

constexpr std::int64_t kTile = 64;
std::int64_t row_stride(std::int64_t columns) {
  std::int64_t stride = pad(static_cast<int>(columns));
  // A stride of a whole number of pages puts a column into one set of the cache: the transpose
  // would then miss on every access.
  if (stride % 512 == 0) stride += kLanes;
  return stride;
}

// Both tiles of a symmetric pair: (i, j) and (j, i) become their own sum and its transpose.
template <class S>
void add_tiles(S* matrix, std::int64_t stride, std::int64_t rows, std::int64_t i0,
               std::int64_t j0) {
  const std::int64_t i_count = std::min(kTile, rows - i0);
  const std::int64_t j_count = std::min(kTile, rows - j0);
  S flipped[kTile][kTile];  // (j, i) transposed
  transpose(matrix + j0 * stride + i0, stride, j_count, i_count, flipped[0], kTile);
  for (std::int64_t i = 0; i < i_count; ++i) {
    S* to = matrix + (i0 + i) * stride + j0;
    for (std::int64_t j = 0; j < j_count; ++j) flipped[i][j] = to[j] += flipped[i][j];
  }
  if (i0 == j0) return;
  transpose(flipped[0], kTile, i_count, j_count, matrix + j0 * stride + i0, stride);
}

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
    // Threads must not throw: each only says whether its rows are clean, then one looks for the
    // first.
    bool clean = true;
    parallel_ranges(context.threads(), rows, [&](std::int64_t begin, std::int64_t end, int) {
      if (!all_within(most, values + begin * dim, (end - begin) * dim)) {
        __atomic_store_n(&clean, false, __ATOMIC_RELAXED);
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

template <class S> void SimilarityMatrix<S>::plan(const Context& context, const LossShape& shape) {
  if constexpr (std::is_same_v<S, float>) symmetric_.plan(context, shape.rows, shape.dim);
  capacity_ = shape.rows * row_stride(shape.rows + shape.memory);
  matrix_ = Buffer::of<S>(capacity_);
}

template <class S>
void SimilarityMatrix<S>::forward(const Context& context, const LossInput<S>& input) {
  stride_ = row_stride(input.rows + input.memory);
  expect(input.rows * stride_ <= capacity_,
         "[loss] expected a batch within what was planned, got {}"
         " rows and {} of memory",
         input.rows, input.memory);
  bool halved = false;
  if constexpr (std::is_same_v<S, float>) {
    halved = SymmetricProduct::pays(input.rows);
    if (halved) {
      symmetric_.run(context, input.rows, input.dim, input.embeddings, row(0), stride_);
    }
  }
  if (!halved) {
    product_abt(context, input.rows, input.rows, input.dim, input.embeddings, input.dim,
                input.embeddings, input.dim, row(0), stride_);
  }
  if (input.memory > 0) {
    product_abt(context, input.rows, input.memory, input.dim, input.embeddings, input.dim,
                input.memory_embeddings, input.dim, row(0) + input.rows, stride_);
  }
}

template <class S> void SimilarityMatrix<S>::add_transpose(int threads, std::int64_t rows) {
  const std::int64_t tiles = (rows + kTile - 1) / kTile;
  for_upper_tiles(threads, tiles, [&](std::int64_t i, std::int64_t j, int) {
    add_tiles(row(0), stride_, rows, i * kTile, j * kTile);
  });
}

template <class S>
void SimilarityMatrix<S>::backward(const Context& context, const LossInput<S>& input, S* grad) {
  add_transpose(context.threads(), input.rows);
  product_ab(context, input.rows, input.dim, input.rows, row(0), stride_, input.embeddings,
             input.dim, S(0), grad, input.dim);
  if (input.memory > 0) {
    product_ab(context, input.rows, input.dim, input.memory, row(0) + input.rows, stride_,
               input.memory_embeddings, input.dim, S(1), grad, input.dim);
  }
}

template class SimilarityMatrix<float>;
template class SimilarityMatrix<double>;
template void check_finite(const Context&, const LossInput<float>&);
template void check_finite(const Context&, const LossInput<double>&);

}  // namespace rk
