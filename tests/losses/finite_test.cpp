#include "losses/frame/finite.h"

#include "engine/base/error.h"
#include "tests/support/messages.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace rk {
namespace {

// A number that cannot be, wherever it stands and however many threads look for it.
TEST(CheckFinite, NamesTheRowOfEveryBadNumber) {
  constexpr std::int64_t kRows = 11, kDim = 5;
  std::vector<float> embeddings(kRows * kDim, 1.0F), memory(kRows * kDim, -1e10F);
  LossInput<float> input;
  input.rows = input.memory = kRows;
  input.dim = kDim;
  input.embeddings = embeddings.data();
  input.memory_embeddings = memory.data();
  for (const int threads : {1, 3}) {
    const Context context(threads);
    EXPECT_NO_THROW(check_finite(context, input));
    for (std::int64_t at = 0; at < kRows * kDim; at += kDim - 1) {
      for (auto* values : {&embeddings, &memory}) {
        float& number = (*values)[static_cast<std::size_t>(at)];
        for (const float bad : {std::nanf(""), -1.1e10F}) {
          const float good = number;
          number = bad;
          const std::string what = values == &memory ? "memory_embeddings" : "embeddings";
          EXPECT_TRUE(holds(message_of<InputError>([&] { check_finite(context, input); }),
                            fmt::format("{}: row {} holds", what, at / kDim)))
              << what << " at " << at << ": " << bad << " by " << threads << " threads";
          number = good;
        }
      }
    }
  }
}

}  // namespace
}  // namespace rk
