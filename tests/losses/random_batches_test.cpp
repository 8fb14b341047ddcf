// Every loss on embeddings with a memory or without, on batches drawn anew each run, large enough
// for what the small cases of conformance_test.cpp do not reach: similarities by symmetry, rows
// handed out by work, gradients of few numbers; classes of one to most of the batch.
#include "tests/losses/loss_test.h"
#include "tests/support/random_seed.h"

namespace rk {
namespace {

class RandomBatches : public LossTest {
 protected:
  // Class sizes alike, or falling as 1/k, or one of half the batch and the rest alone.
  LossData<double> batch(std::uint64_t seed, std::int64_t most_rows,
                         std::int64_t least_dim = 1) const {
    CounterRandom random(seed, 1, 0);
    made_up::Wanted wanted;
    wanted.rows = 2 + random.below(most_rows - 1);
    wanted.memory = takes_memory(entry().kind) && random.below(2) == 0 ? random.below(90) : 0;
    wanted.dim = least_dim + random.below(40);
    wanted.identities = random.below(3) == 0;
    const std::int64_t kind = random.below(3);
    wanted.classes = 1 + random.below(wanted.rows);
    LossData<double> data = made_up::data(kind_, wanted, seed);
    if (kind_ != LossKind::kEmbeddings || kind == 0 || wanted.identities) return data;
    const auto relabel = [&](std::vector<std::int64_t>& labels) {
      for (std::int64_t& label : labels) {
        const double u = random.uniform();
        label = kind == 1 ? static_cast<std::int64_t>(1 / (u + 0.003))
                : u < 0.5 ? -1
                          : random.below(std::int64_t{1} << 40);
      }
    };
    relabel(data.labels);
    relabel(data.memory_labels);
    return data;
  }
  const LossEntry& entry() const { return *spec_.entry; }
};

TEST_P(RandomBatches, AgreeWithThePlainDefinition) {
  const std::uint64_t first = random_seed();
  for (std::uint64_t seed = first; seed < first + 8; ++seed) {
    const LossData<double> data = batch(seed, 80);
    const reference::Value value = expected(data);
    const LossResult<double> result = run(data);
    ASSERT_EQ(result.valid_queries, value.valid) << "seed " << seed;
    ASSERT_NEAR(result.loss, value.loss, 1e-9 * std::abs(value.loss) + 1e-12) << "seed " << seed;
  }
}

// Embeddings of one number apart: oneDNN adds up a matrix times a vector in as many parts as there
// are threads.
TEST_P(RandomBatches, AnyNumberOfThreadsGivesTheSameBits) {
  const std::uint64_t first = random_seed();
  for (std::uint64_t seed = first; seed < first + 4; ++seed) {
    const LossData<float> data = made_up::as_float(batch(seed, 330, 2));
    std::vector<LossResult<float>> results;
    for (int threads = 1; threads <= 3; ++threads) {
      const Context context(threads);
      LossFunction<float> function(context, spec_, data.shape(), false);
      results.push_back(function(data));
      ASSERT_EQ(results.back().loss, results.front().loss) << "seed " << seed;
      ASSERT_EQ(results.back().grad, results.front().grad) << "seed " << seed;
      ASSERT_EQ(results.back().grad_proxies, results.front().grad_proxies) << "seed " << seed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Losses, RandomBatches, testing::ValuesIn(all_specs()), test_name);

}  // namespace
}  // namespace rk
