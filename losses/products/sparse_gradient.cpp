#include "losses/products/sparse_gradient.h"

#include "engine/base/error.h"
#include "engine/base/parallel_by_work.h"
#include "kernels/flush_denormals.h"

#include <algorithm>

namespace rk {
namespace {

template <class S> void add_scaled(S factor, const S* from, std::int64_t count, S* to) {
#pragma omp simd
  for (std::int64_t d = 0; d < count; ++d) to[d] += factor * from[d];
}

}  // namespace

template <class S> void SparseGradient<S>::allocate(const LossShape& shape, int width) {
  width_ = width;
  const auto rows = static_cast<std::size_t>(shape.rows);
  nonzeros_.resize(rows * static_cast<std::size_t>(width));
  incoming_.resize(nonzeros_.size());
  first_.resize(rows + 1);
  work_.resize(rows + 1);
}

template <class S> std::int64_t SparseGradient<S>::bytes() const {
  return static_cast<std::int64_t>(nonzeros_.size() * sizeof(NonZero) +
                                   (incoming_.size() + first_.size() + work_.size()) *
                                       sizeof(std::int64_t));
}

// A counting sort of the non-zeros by column.
template <class S> void SparseGradient<S>::find_incoming(std::int64_t rows) {
  const auto for_incoming = [&](auto&& f) {
    for (std::int64_t at = 0; at < rows * width_; ++at) {
      const NonZero& number = nonzeros_[static_cast<std::size_t>(at)];
      if (number.value != 0 && number.column < rows) f(at, first_.data() + number.column);
    }
  };
  std::fill(first_.begin(), first_.end(), std::int64_t{0});
  for_incoming([](std::int64_t, std::int64_t* count) { ++count[1]; });
  for (std::int64_t i = 0; i < rows; ++i) {
    const auto at = static_cast<std::size_t>(i);
    first_[at + 1] += first_[at];
    work_[at + 1] = first_[at + 1] + (i + 1) * (width_ + 1);
  }
  for_incoming([&](std::int64_t at, std::int64_t* place) {
    incoming_[static_cast<std::size_t>((*place)++)] = at;
  });
  // Each first_ has moved to the end of its column, where the next begins: move them back.
  for (std::int64_t i = rows; i > 0; --i) {
    first_[static_cast<std::size_t>(i)] = first_[static_cast<std::size_t>(i - 1)];
  }
  first_[0] = 0;
}

template <class S>
void SparseGradient<S>::backward(const Context& context, const LossInput<S>& input, S* grad) {
  const std::int64_t rows = input.rows;
  const std::int64_t dim = input.dim;
  expect(rows * width_ <= static_cast<std::int64_t>(nonzeros_.size()),
         "[sparse_gradient] expected a batch within what was allocated, got {} rows", rows);
  find_incoming(rows);
  parallel_by_work(context.threads(), rows, work_.data(),
                   [&](std::int64_t begin, std::int64_t end, int) {
                     const FlushDenormals flush;
                     for (std::int64_t i = begin; i < end; ++i) {
                       S* out = grad + i * dim;
                       std::fill_n(out, dim, S(0));
                       for (const NonZero* own = row(i); own != row(i + 1); ++own) {
                         if (own->value == 0) continue;
                         const std::int64_t column = own->column;
                         add_scaled(own->value,
                                    column < rows ? input.embeddings + column * dim
                                                  : input.memory_embeddings + (column - rows) * dim,
                                    dim, out);
                       }
                       const auto at = static_cast<std::size_t>(i);
                       for (std::int64_t k = first_[at]; k < first_[at + 1]; ++k) {
                         const std::int64_t number = incoming_[static_cast<std::size_t>(k)];
                         add_scaled(nonzeros_[static_cast<std::size_t>(number)].value,
                                    input.embeddings + number / width_ * dim, dim, out);
                       }
                     }
                   });
}

template class SparseGradient<float>;
template class SparseGradient<double>;

}  // namespace rk
