// run() allocates nothing. Allocations are counted in operator new, which all of the project's code
// goes through except Buffer; bytes() counts Buffer's memory.
#include "tests/support/made_up.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<long> allocations{0};
}

// Not inlined: otherwise the compiler would see malloc and delete as a mismatched pair.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
// std::stable_sort calls the nothrow version; memory of a sanitizer's own would reach our delete.
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(bytes == 0 ? 1 : bytes);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace rk {
namespace {

TEST(LossAllocation, RunAllocatesNothing) {
  const Context context(2);
  for (const LossEntry& entry : loss_registry()) {
    made_up::Wanted wanted;
    wanted.rows = 40;
    wanted.memory = entry.kind == LossKind::kEmbeddings ? 16 : 0;
    // In double: float uses oneDNN's products, which keep a cache of their own.
    const LossData<double> data = made_up::data(entry.kind, wanted, 5);
    const auto loss = make_loss<double>(entry.name);
    loss->allocate(context, data.shape());
    std::vector<double> grad(static_cast<std::size_t>(data.grad_elements(entry.kind)));
    std::vector<double> grad_proxies(static_cast<std::size_t>(data.proxy_elements(entry.kind)));
    LossOutput<double> output;
    output.grad = grad.data();
    output.grad_proxies = grad_proxies.data();
    const LossInput<double> input = data.input();
    loss->run(context, input, output);  // starts the threads
    const std::int64_t bytes = loss->bytes();
    const long before = allocations;
    loss->run(context, input, output);
    EXPECT_EQ(allocations - before, 0) << entry.name;
    EXPECT_EQ(loss->bytes(), bytes) << entry.name;
    EXPECT_GT(bytes, 0) << entry.name;
  }
}

// One matrix of scores and memory per row: no loss of pairs keeps a second matrix. Planned, not
// run: untouched memory costs nothing.
TEST(LossAllocation, ALargeBatchTakesLessThanThreeMatrices) {
  const Context context(2);
  constexpr std::int64_t kRows = 16384;
  constexpr double kMatrix = 4.0 * kRows * kRows;
  for (const LossEntry& entry : loss_registry()) {
    const auto loss = make_loss<float>(entry.name);
    // As many proxies as items would be the largest matrix that makes sense.
    const std::int64_t classes = entry.kind == LossKind::kScores ? 1 : kRows;
    loss->allocate(context, {.rows = kRows, .memory = 0, .dim = 128, .classes = classes});
    const double matrices = static_cast<double>(loss->bytes()) / kMatrix;
    EXPECT_LT(matrices, 3) << entry.name;
    if (entry.kind != LossKind::kScores) {
      EXPECT_GT(matrices, 1) << entry.name;
    } else {
      EXPECT_LT(matrices, 0.01) << entry.name;
    }
  }
}

TEST(LossAllocation, TheCounterCounts) {
  const long before = allocations;
  const std::vector<int> one(1);  // used by gtest, so the compiler cannot leave it out
  EXPECT_EQ(one.data()[0], 0);
  EXPECT_EQ(allocations - before, 1);
}

}  // namespace
}  // namespace rk
