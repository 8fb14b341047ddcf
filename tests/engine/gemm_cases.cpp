#include "tests/engine/gemm_cases.h"

#include "engine/base/integers.h"
#include "engine/base/random.h"
#include "engine/device/gemm.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace rk {
namespace {

// An array in the device's memory.
class Numbers {
 public:
  Numbers(const Context& context, const std::vector<float>& numbers)
      : memory_(context.copy_of(numbers)) {}
  float* data() const { return memory_.as<float>(); }
  std::vector<float> read() const {
    std::vector<float> numbers(memory_.bytes() / sizeof(float));
    memory_.download(numbers.data(), memory_.bytes());
    return numbers;
  }

 private:
  Memory memory_;
};

}  // namespace

void check_gemm(const Context& context, std::uint64_t seed) {
  CounterRandom random(seed, 6, 0);
  const auto size = [&] { return 1 + random.below(random.below(2) == 0 ? 9 : 70); };
  const auto gap = [&] { return random.below(2) == 0 ? 0 : random.below(5); };
  const bool ta = random.below(2) != 0, tb = random.below(2) != 0;
  const std::int64_t m = size(), n = size(), k = size();
  const std::int64_t lda = (ta ? m : k) + gap(), ldb = (tb ? k : n) + gap(), ldc = n + gap();
  const bool accumulate = random.below(2) == 0;
  SCOPED_TRACE(fmt::format("seed {}: {} x {} x {}", seed, m, n, k));

  const auto numbers = [&](std::int64_t count) {
    std::vector<float> values(at(count));
    for (float& value : values) value = static_cast<float>(random.uniform(-1, 1));
    return values;
  };
  const std::vector<float> a = numbers((ta ? k : m) * lda), b = numbers((tb ? n : k) * ldb);
  std::vector<float> held = numbers(m * ldc);
  if (!accumulate) {  // NaN must be overwritten
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) held[at(i * ldc + j)] = std::nanf("");
    }
  }
  const Numbers device_a(context, a), device_b(context, b), c(context, held);
  const MatrixProduct<float> product{.a = {device_a.data(), ta ? k : m, ta ? m : k, lda, ta},
                                     .b = {device_b.data(), tb ? n : k, tb ? k : n, ldb, tb},
                                     .c = {c.data(), m, n, ldc},
                                     .accumulate = accumulate};
  if (random.below(2) == 0) {
    gemm(context, product);
  } else {
    PreparedGemm(context, product).run();
  }
  const std::vector<float> got = c.read();
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < ldc; ++j) {
      const std::size_t place = at(i * ldc + j);
      if (j >= n) {
        ASSERT_EQ(got[place], held[place]) << "written beside the result";
        continue;
      }
      double sum = accumulate ? static_cast<double>(held[place]) : 0;
      for (std::int64_t p = 0; p < k; ++p) {
        sum += static_cast<double>(a[at(ta ? p * lda + i : i * lda + p)]) *
               static_cast<double>(b[at(tb ? j * ldb + p : p * ldb + j)]);
      }
      // k float32 products and sums of numbers in [-1, 1].
      ASSERT_NEAR(got[place], sum, 1e-6 + 1.2e-7 * static_cast<double>(k)) << i << ", " << j;
    }
  }
}

}  // namespace rk
