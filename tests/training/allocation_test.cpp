// A training step allocates nothing. All calls of malloc and its relatives in the process, operator
// new included, are counted, by caller. oneDNN itself allocates a small table of arguments for each
// primitive it executes, and memory into which it packs a matrix product's operands; that is
// recorded with the test and may not grow from step to step.
#include "engine/base/sanitizers.h"
#include "tests/training/noise_batch.h"
#include "training/trainer.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

std::atomic<bool> counting{false};
std::atomic<int> ours{0}, libraries{0};
std::atomic<const void*> culprit{nullptr};

#if !RK_SANITIZED
bool in_library(const void* caller) {
  Dl_info info{};
  return dladdr(caller, &info) != 0 && info.dli_fname != nullptr &&
         (std::strstr(info.dli_fname, "libdnnl") != nullptr ||
          std::strstr(info.dli_fname, "libgomp") != nullptr);
}

void count(const void* caller) {
  if (!counting.load(std::memory_order_relaxed)) return;
  if (in_library(caller)) {
    ++libraries;
  } else {
    ++ours;
    culprit = caller;
  }
}
#endif

}  // namespace

#if !RK_SANITIZED
// The program's own definitions take the place of the C library's, in shared libraries too.
extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the C library's names
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* old, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

void* malloc(std::size_t bytes) {
  count(__builtin_return_address(0));
  return __libc_malloc(bytes);
}
void* calloc(std::size_t items, std::size_t bytes) {
  count(__builtin_return_address(0));
  return __libc_calloc(items, bytes);
}
void* realloc(void* old, std::size_t bytes) {
  count(__builtin_return_address(0));
  return __libc_realloc(old, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  count(__builtin_return_address(0));
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
  count(__builtin_return_address(0));
  *out = __libc_memalign(alignment, bytes);
  return *out == nullptr ? 12 : 0;
}
}

// Defined here, because libstdc++'s would hide the caller behind its own call of malloc; not
// inlined, because the compiler would see malloc and delete as a mismatched pair.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  count(__builtin_return_address(0));
  void* memory = __libc_malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif

namespace rk {
namespace {

TEST(Allocation, ATrainingStepAllocatesNothing) {
#if RK_SANITIZED
  GTEST_SKIP() << "a sanitizer has the allocator to itself";
#endif
  const Context context(2);
  TrainerOptions options = small_trainer("fastap", 16);
  options.model.dim = 16;
  std::vector<std::uint8_t> pixels(16 * 16 * 16 * 3);
  for (std::size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = static_cast<std::uint8_t>(i * 31 >> 3);
  std::vector<std::int64_t> labels, indices;
  for (std::int64_t i = 0; i < 16; ++i) {
    labels.push_back(i / 4);
    indices.push_back(i);
  }
  Batch batch;
  batch.count = 16;
  batch.size = 16;
  batch.pixels = pixels;
  batch.labels = labels;
  batch.indices = indices;
  for (const char* loss : {"fastap", "smooth_ap", "nsl", "fastap in chunks with a memory"}) {
    for (const BatchNormMode mode : {BatchNormMode::kBatch, BatchNormMode::kRunning}) {
      const bool everything = std::strchr(loss, ' ') != nullptr;
      options.loss = parse_loss(everything ? "fastap" : loss);
      options.chunk = everything ? 4 : 0;
      options.memory_batches = everything ? 2 : 0;
      options.batchnorm = mode;
      Trainer trainer(context, options);
      trainer.step(batch);  // libraries set themselves up in the first steps
      trainer.step(batch);
      const auto count_step = [&] {
        ours = libraries = 0;
        counting = true;
        trainer.step(batch);
        counting = false;
        return libraries.load();
      };
      const int first = count_step();
      Dl_info who{};
      if (culprit != nullptr) dladdr(culprit, &who);
      EXPECT_EQ(ours, 0) << loss << ", called from " << culprit.load() << " "
                         << (who.dli_sname != nullptr ? who.dli_sname : "");
      EXPECT_EQ(count_step(), first) << loss;
      EXPECT_EQ(ours, 0) << loss;
      RecordProperty("allocations_of_libraries", first);
    }
  }
}

// The counter counts: without this, zero above could mean anything.
TEST(Allocation, TheCounterCounts) {
#if RK_SANITIZED
  GTEST_SKIP() << "a sanitizer has the allocator to itself";
#endif
  ours = 0;
  counting = true;
  auto* volatile one = new int(1);
  void* volatile two = std::malloc(10);
  counting = false;
  EXPECT_EQ(ours, 2);
  delete one;
  std::free(two);
}

}  // namespace
}  // namespace rk
