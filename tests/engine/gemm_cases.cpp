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
  const auto op = [&] { return random.below(2) == 0 ? Op::kNone : Op::kTranspose; };
  GemmShape s{
      .op_a = op(), .op_b = op(), .m = size(), .n = size(), .k = size(), .in = in, .out = out};
  const bool ta = s.op_a == Op::kTranspose, tb = s.op_b == Op::kTranspose;
  s.lda = (ta ? s.m : s.k) + gap();
  s.ldb = (tb ? s.k : s.n) + gap();
  s.ldc = s.n + gap();
  s.accumulate = random.below(2) == 0;
  const bool with_bias = random.below(2) == 0;
  SCOPED_TRACE(fmt::format("seed {}: {} x {} x {}", seed, s.m, s.n, s.k));

  const auto numbers = [&](std::int64_t count) {
    std::vector<float> values(at(count));
    for (float& value : values) value = static_cast<float>(random.uniform(-1, 1));
    return values;
  };
  const Numbers a(context, in, numbers((ta ? s.k : s.m) * s.lda));
  const Numbers b(context, in, numbers((tb ? s.n : s.k) * s.ldb));
  const Numbers bias(context, out, numbers(s.n));
  std::vector<float> held = numbers(s.m * s.ldc);
  if (!s.accumulate) {  // NaN must be overwritten
    for (std::int64_t i = 0; i < s.m; ++i) {
      for (std::int64_t j = 0; j < s.n; ++j) held[at(i * s.ldc + j)] = std::nanf("");
    }
  }
  const Numbers c(context, out, held);
  const std::vector<float> wide_a = a.read(), wide_b = b.read(), wide_bias = bias.read();
  held = c.read();

  const PreparedGemm product(
      context, s,
      {.a = a.data(), .b = b.data(), .bias = with_bias ? bias.data() : nullptr, .c = c.data()});
  product.run();
  const std::vector<float> got = c.read();
  // k float32 products and sums, and one rounding of the result.
  const double rounded = out == DType::kFloat16 ? 0x1p-11 : out == DType::kBfloat16 ? 0x1p-8 : 0;
  for (std::int64_t i = 0; i < s.m; ++i) {
    for (std::int64_t j = 0; j < s.ldc; ++j) {
      const std::size_t place = at(i * s.ldc + j);
      if (j >= s.n) {
        ASSERT_EQ(got[place], held[place]) << "written beside the result";
        continue;
      }
      double sum = with_bias ? static_cast<double>(wide_bias[at(j)]) : 0;
      for (std::int64_t p = 0; p < s.k; ++p) {
        sum += static_cast<double>(wide_a[at(ta ? p * s.lda + i : i * s.lda + p)]) *
               static_cast<double>(wide_b[at(tb ? j * s.ldb + p : p * s.ldb + j)]);
      }
      if (s.accumulate) sum += static_cast<double>(held[place]);
      ASSERT_NEAR(got[place], sum,
                  1e-6 + 1.2e-7 * static_cast<double>(s.k) + rounded * std::abs(sum))
          << i << ", " << j;
    }
  }
}

}  // namespace rk::testing
