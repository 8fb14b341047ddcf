#include "losses/products/similarity.h"

#include "engine/base/random.h"
#include "tests/support/random_seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>
#include <vector>

namespace rk {
namespace {

struct Case {
  explicit Case(CounterRandom& random) {
    input.rows = 1 + random.below(200);
    input.memory = random.below(2) * random.below(60);
    // A stride of a multiple of 512 would be lengthened (row_stride()).
    if (random.below(8) == 0) input.rows = 497 + random.below(24) - input.memory;
    input.dim = 1 + random.below(40);
    for (auto* values : {&embeddings, &memory}) {
      const std::int64_t rows = values == &embeddings ? input.rows : input.memory;
      for (std::int64_t i = 0; i < rows * input.dim; ++i) {
        values->push_back(static_cast<float>(random.normal()));
      }
    }
    input.embeddings = embeddings.data();
    input.memory_embeddings = memory.data();
    const double density = std::exp(random.uniform(-9, 0));
    for (std::int64_t i = 0; i < input.rows * columns(); ++i) {
      const bool zero = random.uniform(0, 1) > density;
      numbers += zero ? 0 : 1;
      gradient.push_back(zero ? 0.0F : static_cast<float>(random.normal()));
    }
  }
  std::int64_t columns() const { return input.rows + input.memory; }
  LossShape shape() const { return {.rows = input.rows, .memory = input.memory, .dim = input.dim}; }

  std::vector<float> backward(int threads, std::int64_t said) const {
    const Context context(threads);
    SimilarityMatrix<float> matrix;
    matrix.allocate(context, shape());
    matrix.forward(context, input);
    for (std::int64_t i = 0; i < input.rows; ++i) {
      std::copy_n(gradient.data() + i * columns(), columns(), matrix.row(i));
    }
    std::vector<float> grad(embeddings.size(), std::nanf(""));
    matrix.backward(context, input, said, grad.data());
    return grad;
  }

  // (G + G^T) E + G_memory * memory.
  double expected(std::int64_t i, std::int64_t d) const {
    double total = 0;
    for (std::int64_t j = 0; j < columns(); ++j) {
      const bool own = j < input.rows;
      const double g = at(i, j) + (own ? at(j, i) : 0.0);
      const float* row =
          own ? embeddings.data() + j * input.dim : memory.data() + (j - input.rows) * input.dim;
      total += g * static_cast<double>(row[d]);
    }
    return total;
  }
  double at(std::int64_t i, std::int64_t j) const {
    return static_cast<double>(gradient[static_cast<std::size_t>(i * columns() + j)]);
  }

  LossInput<float> input;
  std::vector<float> embeddings, memory, gradient;
  std::int64_t numbers = 0;
};

// G of any density, both ways that `numbers` selects: rows added up, and a matrix product.
TEST(Similarity, WayBackAgreesWithPlainLoops) {
  for (const std::uint64_t seed : random_seeds(60)) {
    CounterRandom random(seed, 1, 0);
    const Case batch(random);
    const std::vector<float> added = batch.backward(1, 0);
    EXPECT_EQ(batch.backward(3, 0), added) << "seed " << seed;
    const std::vector<float> counted = batch.backward(1, batch.numbers);
    const std::vector<float> product = batch.backward(1, batch.input.rows * batch.columns());
    for (std::int64_t i = 0; i < batch.input.rows; ++i) {
      for (std::int64_t d = 0; d < batch.input.dim; ++d) {
        const auto k = static_cast<std::size_t>(i * batch.input.dim + d);
        const double expected = batch.expected(i, d);
        // Sums of up to 520 products of normal numbers, some 23 in size, each step rounded.
        for (const float got : {added[k], counted[k], product[k]}) {
          ASSERT_NEAR(static_cast<double>(got), expected, 2e-4) << "seed " << seed;
        }
      }
    }
  }
}

// Fewer rows need more room where their memory is larger.
TEST(Similarity, ABatchBeyondWhatWasAllocatedIsRefused) {
  const Context context(1);
  const std::vector<float> values(10000, 0.5F);
  for (const auto& [rows, memory] : {std::pair{21, 0}, std::pair{20, 100}, std::pair{10, 200}}) {
    SimilarityMatrix<float> matrix;
    matrix.allocate(context, {.rows = 20, .memory = 10, .dim = 4});
    LossInput<float> input;
    input.rows = rows;
    input.memory = memory;
    input.dim = 4;
    input.embeddings = input.memory_embeddings = values.data();
    EXPECT_THROW(matrix.forward(context, input), std::invalid_argument) << rows << ", " << memory;
  }
}

}  // namespace
}  // namespace rk
