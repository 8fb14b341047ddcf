#include "tests/engine/gemm_cases.h"

#include "engine/base/error.h"
#include "engine/base/half.h"
#include "engine/base/random.h"
#include "engine/device/gemm.h"
#include "engine/device/precision.h"
#include "kernels/half_element.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

namespace rk::testing {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// An array of a given type in the device's memory.
class Numbers {
 public:
  Numbers(const Context& context, DType type, const std::vector<float>& numbers)
      : type_(type), memory_(context.allocate(numbers.size() * size_of(type))) {
    std::vector<std::byte> bytes(memory_.bytes());
    with_type(type, [&]<class T>() {
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        const T value = Element<T>::narrow(numbers[i]);
        std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
      }
    });
    memory_.upload(bytes.data(), bytes.size());
  }
  void* data() const { return memory_.data(); }
  Matrix matrix(std::int64_t rows, std::int64_t columns, std::int64_t stride) const {
    return with_type(type_,
                     [&]<class T>() { return Matrix(memory_.as<T>(), rows, columns, stride); });
  }
  std::vector<float> read() const {
    std::vector<std::byte> bytes(memory_.bytes());
    memory_.download(bytes.data(), bytes.size());
    return widened(bytes, type_);
  }

 private:
  DType type_;
  Memory memory_;
};

}  // namespace

void check_prepared_gemm(const Context& context, DType in, DType out, std::uint64_t seed) {
  CounterRandom random(seed, 6, 0);
  const auto size = [&] { return 1 + random.below(random.below(2) == 0 ? 9 : 70); };
  const auto gap = [&] { return random.below(2) == 0 ? 0 : random.below(5); };
  const bool ta = random.below(2) != 0, tb = random.below(2) != 0;
  const std::int64_t m = size(), n = size(), k = size();
  const std::int64_t lda = (ta ? m : k) + gap(), ldb = (tb ? k : n) + gap(), ldc = n + gap();
  const bool accumulate = random.below(2) == 0;
  const bool with_bias = random.below(2) == 0;
  SCOPED_TRACE(fmt::format("seed {}: {} x {} x {}", seed, m, n, k));

  const auto numbers = [&](std::int64_t count) {
    std::vector<float> values(at(count));
    for (float& value : values) value = static_cast<float>(random.uniform(-1, 1));
    return values;
  };
  const Numbers a(context, in, numbers((ta ? k : m) * lda));
  const Numbers b(context, in, numbers((tb ? n : k) * ldb));
  const Numbers bias(context, out, numbers(n));
  std::vector<float> held = numbers(m * ldc);
  if (!accumulate) {  // NaN must be overwritten
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) held[at(i * ldc + j)] = std::nanf("");
    }
  }
  const Numbers c(context, out, held);
  const std::vector<float> wide_a = a.read(), wide_b = b.read(), wide_bias = bias.read();
  held = c.read();

  const Factor stored_a = a.matrix(ta ? k : m, ta ? m : k, lda);
  const Factor stored_b = b.matrix(tb ? n : k, tb ? k : n, ldb);
  const PreparedGemm product(context, {.a = ta ? transposed(stored_a) : stored_a,
                                       .b = tb ? transposed(stored_b) : stored_b,
                                       .c = c.matrix(m, n, ldc),
                                       .bias = with_bias ? bias.data() : nullptr,
                                       .accumulate = accumulate});
  product.run();
  const std::vector<float> got = c.read();
  // k float32 products and sums, and one rounding of the result.
  const double rounded = out == DType::kFloat16 ? 0x1p-11 : out == DType::kBfloat16 ? 0x1p-8 : 0;
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < ldc; ++j) {
      const std::size_t place = at(i * ldc + j);
      if (j >= n) {
        ASSERT_EQ(got[place], held[place]) << "written beside the result";
        continue;
      }
      double sum = with_bias ? static_cast<double>(wide_bias[at(j)]) : 0;
      for (std::int64_t p = 0; p < k; ++p) {
        sum += static_cast<double>(wide_a[at(ta ? p * lda + i : i * lda + p)]) *
               static_cast<double>(wide_b[at(tb ? j * ldb + p : p * ldb + j)]);
      }
      if (accumulate) sum += static_cast<double>(held[place]);
      ASSERT_NEAR(got[place], sum, 1e-6 + 1.2e-7 * static_cast<double>(k) + rounded * std::abs(sum))
          << i << ", " << j;
    }
  }
}

}  // namespace rk::testing
