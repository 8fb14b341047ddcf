// Memory of the loader, seen by the program's own malloc: a worker gets none, and next() asks for
// none.
#include "data/loader/loader.h"
#include "data/sources/open_dataset.h"
#include "engine/base/sanitizers.h"
#include "tests/data/picture_folder.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

namespace {

constexpr std::size_t kNone = 0;
// Requests of this size fail, but for the test's own thread.
std::atomic<std::size_t> refused_bytes{kNone};
thread_local bool of_the_test = false;
thread_local std::int64_t requests = 0;

}  // namespace

#if !RK_SANITIZED  // a sanitizer has a heap of its own
// The program's own definition takes the place of the C library's, for operator new too.
extern "C" {
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming): the C library's name
void* __libc_malloc(std::size_t bytes);

void* malloc(std::size_t bytes) {
  ++requests;
  const bool refused =
      bytes != kNone && bytes == refused_bytes.load(std::memory_order_relaxed) && !of_the_test;
  return refused ? nullptr : __libc_malloc(bytes);
}
}
#endif

namespace rk {
namespace {

// Noting a bad picture takes memory, too: where there is none, next() says so.
TEST(LoaderBad, WithoutMemoryToNoteItTheBatchFails) {
  if (RK_SANITIZED) GTEST_SKIP() << "a sanitizer has a heap of its own";
  const PictureFolder folder;
  folder.classes("c", 2, 4);
  folder.write("c1/2.png", "this is no picture\n");
  const Dataset data = open_dataset(folder.spec(), Split::kTrain);
  const auto sampler = make_sampler("pk:k=4", data, 8, 5);
  of_the_test = true;
  refused_bytes = sizeof(std::pair<std::int64_t, BadImage>);  // the first one of a batch
  {
    Loader loader(data, *sampler, center_crop(16, 16), {.workers = 2});
    EXPECT_THROW(loader.next(), std::bad_alloc);
    EXPECT_THROW(loader.next(), std::bad_alloc);
  }
  refused_bytes = kNone;
}

TEST(Loader, NextAllocatesNothing) {
  if (RK_SANITIZED) GTEST_SKIP() << "a sanitizer has a heap of its own";
  const PictureFolder folder;
  folder.classes("c", 3, 4);
  const Dataset data = open_dataset(folder.spec(), Split::kTrain);
  const auto sampler = make_sampler("pk:k=4", data, 8, 5);
  const std::int64_t before_any = requests;
  Loader loader(data, *sampler, center_crop(16, 16), {.workers = 2, .end_epoch = 20});
  EXPECT_GT(requests, before_any) << "the ring is no memory that malloc gave";
  const std::int64_t before = requests;
  std::int64_t batches = 0;
  while (loader.next() != nullptr) ++batches;
  EXPECT_EQ(requests, before);
  EXPECT_EQ(batches, 20 * sampler->batches_per_epoch());
}

}  // namespace
}  // namespace rk
