#include "losses/products/transpose.h"
#include "engine/base/integers.h"

#include "engine/base/random.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <vector>

namespace rk {
namespace {

// Any shape and strides: every number must be in its place, and nothing written between the rows.
template <class S> void compare() {
  for (const std::uint64_t seed : random_seeds(500)) {
    CounterRandom random(seed, 1, 0);
    const std::int64_t rows = random.below(70);
    const std::int64_t columns = random.below(70);
    const std::int64_t from_stride = columns + random.below(20);
    const std::int64_t to_stride = rows + random.below(20);
    std::vector<S> from(static_cast<std::size_t>(rows * from_stride));
    for (S& x : from) x = static_cast<S>(1 + random.uniform());
    std::vector<S> to(static_cast<std::size_t>(columns * to_stride), S(-1));
    transpose(from.data(), from_stride, rows, columns, to.data(), to_stride);
    for (std::int64_t j = 0; j < columns; ++j) {
      for (std::int64_t i = 0; i < to_stride; ++i) {
        const S wanted = i < rows ? from[at(i * from_stride + j)] : S(-1);
        ASSERT_EQ(to[at(j * to_stride + i)], wanted) << "seed " << seed << ", " << i << ", " << j;
      }
    }
  }
}

TEST(Transpose, FloatsInAnyShape) { compare<float>(); }
TEST(Transpose, DoublesInAnyShape) { compare<double>(); }

}  // namespace
}  // namespace rk
