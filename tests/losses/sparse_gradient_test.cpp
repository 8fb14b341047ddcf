#include "losses/products/sparse_gradient.h"

#include "engine/base/random.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <vector>

namespace rk {
namespace {

struct Batch {
  LossInput<double> input;
  std::vector<double> embeddings;
  std::vector<double> memory;
};

Batch make_batch(CounterRandom& random) {
  Batch out;
  out.input.rows = 1 + random.below(60);
  out.input.memory = random.below(2) * random.below(40);
  out.input.dim = 1 + random.below(40);
  const auto fill = [&](std::vector<double>& values, std::int64_t rows) {
    for (std::int64_t i = 0; i < rows * out.input.dim; ++i) values.push_back(random.normal());
  };
  fill(out.embeddings, out.input.rows);
  fill(out.memory, out.input.memory);
  out.input.embeddings = out.embeddings.data();
  out.input.memory_embeddings = out.memory.data();
  return out;
}

// One to four numbers a row: some are 0, some in the same column or in the row's own, often many
// rows' in one column; with memory and without. dE must be (G + G^T) E + G_memory * memory of a
// whole G by plain loops, with the same bits for any number of threads.
TEST(SparseGradient, AgreesWithAWholeMatrix) {
  for (const std::uint64_t seed : random_seeds(600)) {
    CounterRandom random(seed, 1, 0);
    const Batch batch = make_batch(random);
    const auto [rows, dim] = std::pair(batch.input.rows, batch.input.dim);
    const std::int64_t columns = rows + batch.input.memory;
    const int width = 1 + static_cast<int>(random.below(4));
    const std::int64_t hub = random.below(columns);
    SparseGradient<double> sparse;
    sparse.allocate({.rows = rows + random.below(9), .memory = batch.input.memory, .dim = dim},
                    width);
    std::vector<double> whole(static_cast<std::size_t>(rows * columns), 0.0);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (int k = 0; k < width; ++k) {
        const std::int64_t column = random.below(3) == 0 ? hub : random.below(columns);
        const double value = random.below(4) == 0 ? 0 : random.normal();
        sparse.row(i)[k] = {static_cast<std::int32_t>(column), value};
        whole[static_cast<std::size_t>(i * columns + column)] += value;
      }
    }
    std::vector<double> expected(static_cast<std::size_t>(rows * dim), 0.0);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        const double g = whole[static_cast<std::size_t>(i * columns + j)];
        const double* other =
            j < rows ? batch.embeddings.data() + j * dim : batch.memory.data() + (j - rows) * dim;
        for (std::int64_t d = 0; d < dim; ++d) {
          expected[static_cast<std::size_t>(i * dim + d)] += g * other[d];
          if (j >= rows) continue;
          expected[static_cast<std::size_t>(j * dim + d)] +=
              g * batch.embeddings[static_cast<std::size_t>(i * dim + d)];
        }
      }
    }
    std::vector<double> one_thread;
    for (int threads = 1; threads <= 3; ++threads) {
      std::vector<double> grad(expected.size(), std::nan(""));
      sparse.backward(Context(threads), batch.input, grad.data());
      if (threads == 1) {
        one_thread = grad;
      } else {
        ASSERT_EQ(grad, one_thread) << "seed " << seed << ", " << threads << " threads";
      }
    }
    for (std::size_t at = 0; at < expected.size(); ++at) {
      // Up to 240 terms of about 1 in another order.
      ASSERT_NEAR(one_thread[at], expected[at], 1e-12) << "seed " << seed << ", element " << at;
    }
  }
}

TEST(SparseGradient, ASmallerBatchAfterALargerOneIsNotTouchedByIt) {
  const std::uint64_t seed = random_seed();
  CounterRandom random(seed, 1, 0);
  SparseGradient<float> sparse;
  sparse.allocate({.rows = 20, .memory = 0, .dim = 3}, 1);
  std::vector<float> embeddings(60);
  for (float& x : embeddings) x = static_cast<float>(random.normal());
  for (const std::int64_t rows : {20, 2}) {
    for (std::int64_t i = 0; i < rows; ++i) sparse.row(i)[0] = {0, i == 1 ? 2.0F : 0.0F};
    LossInput<float> input;
    input.rows = rows;
    input.dim = 3;
    input.embeddings = embeddings.data();
    std::vector<float> grad(static_cast<std::size_t>(rows * 3), 9.0F);
    sparse.backward(Context(2), input, grad.data());
    for (std::size_t d = 0; d < 3; ++d) {
      EXPECT_EQ(grad[d], 2 * embeddings[3 + d]) << "seed " << seed;
      EXPECT_EQ(grad[3 + d], 2 * embeddings[d]) << "seed " << seed;
    }
    for (std::size_t at = 6; at < grad.size(); ++at) EXPECT_EQ(grad[at], 0) << "seed " << seed;
  }
}

TEST(SparseGradient, ABatchBeyondWhatWasAllocatedIsRefused) {
  SparseGradient<float> sparse;
  sparse.allocate({.rows = 4, .memory = 0, .dim = 2}, 3);
  const std::vector<float> embeddings(10);
  LossInput<float> input;
  input.rows = 5;
  input.dim = 2;
  input.embeddings = embeddings.data();
  std::vector<float> grad(10);
  EXPECT_THROW(sparse.backward(Context(1), input, grad.data()), std::invalid_argument);
}

}  // namespace
}  // namespace rk
