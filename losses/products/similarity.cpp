#include "losses/products/similarity.h"

#include "engine/base/error.h"
#include "engine/base/integers.h"
#include "kernels/blocks/matrix_block.h"
#include "kernels/launch.h"
#include "kernels/team.h"
#include "losses/products/multiply.h"
#include "losses/products/transpose.h"
#include "losses/products/upper_tiles.h"

#include <algorithm>

namespace rk {
namespace {

constexpr std::int64_t kEdge = 64;  // of a tile

// If one number of dLoss/dS in kFew is not 0, adding rows up takes half to two thirds of the time
// of a product at 384 to 1,024 rows; at one in 32, both take the same time at 4,096 rows.
constexpr std::int64_t kFew = 64;

std::int64_t row_stride(std::int64_t columns) {
  std::int64_t stride = pad(static_cast<int>(columns));
  // With a stride of a multiple of 512 elements a column would fall into few sets of the cache, and
  // the transpose would miss on every access.
  if (stride % 512 == 0) stride += kLanes;
  return stride;
}

// For a symmetric pair of tiles: (i, j) becomes (i, j) + (j, i)^T, and (j, i) its transpose.
template <class S>
void add_tiles(S* matrix, std::int64_t stride, std::int64_t rows, std::int64_t i0,
               std::int64_t j0) {
  const std::int64_t i_count = std::min(kEdge, rows - i0);
  const std::int64_t j_count = std::min(kEdge, rows - j0);
  S flipped[kEdge][kEdge];  // (j, i) transposed
  transpose(matrix + j0 * stride + i0, stride, j_count, i_count, flipped[0], kEdge);
  for (std::int64_t i = 0; i < i_count; ++i) {
    S* to = matrix + (i0 + i) * stride + j0;
    for (std::int64_t j = 0; j < j_count; ++j) flipped[i][j] = to[j] += flipped[i][j];
  }
  if (i0 == j0) return;
  transpose(flipped[0], kEdge, i_count, j_count, matrix + j0 * stride + i0, stride);
}

}  // namespace

template <class S>
void SimilarityMatrix<S>::allocate(const Context& context, const LossShape& shape) {
  capacity_ = shape.rows * row_stride(shape.rows + shape.memory);
  matrix_ = context.allocate<S>(capacity_);
  context.clear(matrix_.data(), matrix_.bytes());  // rows load the padding after their columns
  symmetric_.reset();
  if (std::is_same_v<S, float> && !context.on_gpu()) {
    symmetric_.emplace().allocate(context, shape.rows, shape.dim);
  }
}

template <class S>
void SimilarityMatrix<S>::forward(const Context& context, const LossInput<S>& input) {
  stride_ = row_stride(input.rows + input.memory);
  expect(input.rows * stride_ <= capacity_,
         "[loss] expected a batch within what was allocated, got {}"
         " rows and {} of memory",
         input.rows, input.memory);
  bool halved = false;
  if constexpr (std::is_same_v<S, float>) {
    halved = symmetric_.has_value() && SymmetricProduct::pays(input.rows);
    if (halved) {
      symmetric_->run(context, input.rows, input.dim, input.embeddings, row(0), stride_);
    }
  }
  const Factor<S> embeddings{input.embeddings, input.rows, input.dim, input.dim};
  if (!halved) {
    multiply<S>(context, {.a = embeddings,
                          .b = transposed(embeddings),
                          .c = {row(0), input.rows, input.rows, stride_}});
  }
  if (input.memory > 0) {
    const Factor<S> memory{input.memory_embeddings, input.memory, input.dim, input.dim};
    multiply<S>(context, {.a = embeddings,
                          .b = transposed(memory),
                          .c = {row(0) + input.rows, input.rows, input.memory, stride_}});
  }
}

template <class S>
void SimilarityMatrix<S>::add_transpose(const Context& context, std::int64_t rows) {
  if constexpr (kRunsOnGpu<S>) {
    if (context.on_gpu()) {
      return launch(context, AddTranspose{row(0), stride_, static_cast<int>(rows)});
    }
  }
  const std::int64_t tiles = divide_up(rows, kEdge);
  for_upper_tiles(context.threads(), tiles, [&](std::int64_t i, std::int64_t j, int) {
    add_tiles(row(0), stride_, rows, i * kEdge, j * kEdge);
  });
}

template <class S>
void SimilarityMatrix<S>::backward(const Context& context, const LossInput<S>& input,
                                   std::int64_t nonzeros, S* grad) {
  const bool few = nonzeros <= input.rows * (input.rows + input.memory) / kFew;
  const auto product = [&](std::int64_t columns, const S* matrix, const S* embeddings,
                           bool accumulate) {
    const MatrixProduct<S> of_rows{.a = {matrix, input.rows, columns, stride_},
                                   .b = {embeddings, columns, input.dim, input.dim},
                                   .c = {grad, input.rows, input.dim, input.dim},
                                   .accumulate = accumulate};
    if (few) {
      multiply_few(context, of_rows);
    } else {
      multiply(context, of_rows);
    }
  };
  add_transpose(context, input.rows);
  product(input.rows, row(0), input.embeddings, false);
  if (input.memory > 0) product(input.memory, row(0) + input.rows, input.memory_embeddings, true);
}

template class SimilarityMatrix<float>;
template class SimilarityMatrix<double>;

}  // namespace rk
