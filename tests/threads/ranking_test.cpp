// Long rankings, which threads share, must give the same bits for any number of threads. This
// folder is linked with the losses alone, so that the build for ThreadSanitizer needs no program.
#include "engine/base/random.h"
#include "losses/registry.h"

#include <gtest/gtest.h>

namespace rk {
namespace {

// Long enough that threads share a column.
constexpr std::int64_t kRows = 50'021;
constexpr std::int64_t kClasses = 2;

struct Result {
  double loss = 0;
  std::vector<float> grad;
};

// `levels`: how many different scores there are, for ties; 0: as many as float has.
Result run(const char* spec, std::int64_t levels, int threads) {
  std::vector<float> scores;
  std::vector<std::uint8_t> targets;
  for (std::int64_t i = 0; i < kRows * kClasses; ++i) {
    CounterRandom random(7, static_cast<std::uint32_t>(levels), static_cast<std::uint64_t>(i));
    scores.push_back(static_cast<float>(levels > 0 ? static_cast<double>(random.below(levels)) / 64
                                                   : random.uniform(-1, 1)));
    targets.push_back(random.below(8) == 0 ? 1 : 0);
  }
  if (levels == 0) {  // once with a positive in front of all, once as it comes
    scores[kClasses] = scores[kClasses + 1] = 2;
    targets[kClasses] = targets[kClasses + 1] = 1;
  }
  const Context context(threads);
  const auto loss = make_loss<float>(spec);
  loss->allocate(context, {.rows = kRows, .classes = kClasses});
  LossInput<float> input;
  input.rows = kRows;
  input.classes = kClasses;
  input.scores = scores.data();
  input.targets = targets.data();
  Result result;
  result.grad.resize(scores.size());
  LossOutput<float> output;
  output.grad = result.grad.data();
  loss->run(context, input, output);
  result.loss = output.loss;
  return result;
}

// The ThreadSanitizer run selects its tests by this name, Parallel*.
TEST(ParallelRanking, AnyNumberOfThreadsGivesTheSameBits) {
  for (const char* spec : {"rambo_map", "rambo_apc", "rambo_map_apc"}) {
    for (const std::int64_t levels : {0, 97}) {
      const Result expected = run(spec, levels, 1);
      EXPECT_GT(expected.loss, 0);
      for (const int threads : {2, 3, 4}) {
        const Result result = run(spec, levels, threads);
        EXPECT_EQ(result.loss, expected.loss) << spec << " on " << threads;
        EXPECT_EQ(result.grad, expected.grad) << spec << " on " << threads;
      }
    }
  }
}

}  // namespace
}  // namespace rk
