#include "training/memory_fit.h"

#include <gtest/gtest.h>

namespace rk {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

TEST(MemoryFit, CountsWholeImages) {
  const MemoryNeed need{.fixed = 2 * kGiB, .per_image = kGiB / 8};
  EXPECT_EQ(images_that_fit(need, 10 * kGiB), 64);
  EXPECT_EQ(images_that_fit(need, 10 * kGiB - 1), 63);
  EXPECT_EQ(images_that_fit(need, 2 * kGiB), 0);
  EXPECT_EQ(images_that_fit(need, kGiB), 0);
  EXPECT_EQ(images_that_fit({.fixed = 0, .per_image = 3}, 10), 3);
}

TEST(MemoryFit, AChunkDividesTheBatch) {
  const MemoryNeed need{.fixed = 2 * kGiB, .per_image = kGiB / 8};
  EXPECT_EQ(chunk_that_fits(need, 10 * kGiB, 128), 64);
  EXPECT_EQ(chunk_that_fits(need, 10 * kGiB - 1, 128), 32);
  EXPECT_EQ(chunk_that_fits(need, 10 * kGiB, 60), 60);
  EXPECT_EQ(chunk_that_fits(need, 3 * kGiB, 7), 7);
  EXPECT_EQ(chunk_that_fits(need, 2 * kGiB + 6 * kGiB / 8, 7), 1);
  EXPECT_EQ(chunk_that_fits(need, 2 * kGiB, 128), 0);
}

TEST(MemoryFit, NothingToSayWhereItFits) {
  const MemoryNeed need{.fixed = 2 * kGiB, .per_image = kGiB / 8};
  EXPECT_EQ(fitting_advice(need, 10 * kGiB, 64, 64), "");
  EXPECT_EQ(fitting_advice(need, 10 * kGiB, 4096, 64), "");
}

// 70 would fit; 64 is the largest of them that divides the batch, and the largest multiple of 8.
TEST(MemoryFit, NamesTheLargestChunkAndBatch) {
  const MemoryNeed need{.fixed = 2 * kGiB, .per_image = kGiB / 8};
  EXPECT_EQ(fitting_advice(need, 10 * kGiB + 6 * kGiB / 8, 128, 128),
            "the GPU's memory is too small: 128 images at a time need 18.00 GiB, 10.75 GiB are "
            "free; use --chunk 64 (the batch in pieces) or --batch 64");
  // Already in chunks.
  EXPECT_EQ(fitting_advice(need, 3 * kGiB, 4096, 64),
            "the GPU's memory is too small: 64 images at a time need 10.00 GiB, 3.00 GiB are free; "
            "use --chunk 8 (the batch in pieces) or --batch 8");
}

// Chunks take 3 GiB more: 40 of 64 images are left, of which 32 divide the batch.
TEST(MemoryFit, ChunksNeedMoreThanAWholeBatch) {
  const MemoryNeed need{.fixed = 2 * kGiB, .per_image = kGiB / 8, .in_parts = 3 * kGiB};
  EXPECT_EQ(images_that_fit(need, 10 * kGiB), 64);
  EXPECT_EQ(chunk_that_fits(need, 10 * kGiB, 128), 32);
  EXPECT_EQ(fitting_advice(need, 10 * kGiB, 64, 64), "");
  EXPECT_EQ(fitting_advice(need, 10 * kGiB, 128, 64),
            "the GPU's memory is too small: 64 images at a time need 13.00 GiB, 10.00 GiB are "
            "free; use --chunk 32 (the batch in pieces) or --batch 64");
  // Not even one image a chunk fits, but a smaller batch does.
  EXPECT_EQ(fitting_advice(need, 4 * kGiB, 128, 128),
            "the GPU's memory is too small: 128 images at a time need 18.00 GiB, 4.00 GiB are "
            "free; use --batch 16");
  EXPECT_EQ(chunk_that_fits(need, 4 * kGiB, 128), 0);
}

// Six images are no batch of classes of four.
TEST(MemoryFit, NamesNoBatchThatMayBeNone) {
  const MemoryNeed need{.fixed = 2 * kGiB, .per_image = kGiB / 8};
  EXPECT_EQ(fitting_advice(need, 2 * kGiB + 6 * kGiB / 8, 96, 96),
            "the GPU's memory is too small: 96 images at a time need 14.00 GiB, 2.75 GiB are free; "
            "use --chunk 6 (the batch in pieces)");
}

TEST(MemoryFit, NotEvenOne) {
  const std::string said =
      "the GPU's memory is too small: a single image needs 2.12 GiB, 1.00 GiB are free; end what "
      "else runs on the GPU (nvidia-smi), or take a smaller network or image";
  const MemoryNeed need{.fixed = 2 * kGiB, .per_image = kGiB / 8};
  EXPECT_EQ(fitting_advice(need, kGiB, 128, 128), said);
  EXPECT_EQ(fitting_advice(need, kGiB, 128, 1), said);
}

// Three processes take 8 images each of a batch of 24.
TEST(MemoryFit, ABatchIsThatOfAllProcesses) {
  const MemoryNeed need{.fixed = 2 * kGiB, .per_image = kGiB / 8, .processes = 3};
  EXPECT_EQ(fitting_advice(need, 4 * kGiB, 32, 32, MemoryOf::kMachine),
            "this machine's memory is too small: 32 images at a time in each of 3 processes need "
            "6.00 GiB, 4.00 GiB are free; use --chunk 16 (the batch in pieces) or --batch 48");
  EXPECT_EQ(fitting_advice(need, kGiB, 32, 32, MemoryOf::kMachine),
            "this machine's memory is too small: a single image in each of 3 processes needs 2.12 "
            "GiB, 1.00 GiB are free; end what else runs here, raise the limit of this program "
            "(ulimit -v, a container's), or take a smaller network or image");
}

TEST(MemoryFit, TheMachinesMemoryIsCalledThat) {
  const MemoryNeed need{.fixed = 2 * kGiB, .per_image = kGiB / 8};
  EXPECT_EQ(fitting_advice(need, 10 * kGiB, 128, 128, MemoryOf::kMachine),
            "this machine's memory is too small: 128 images at a time need 18.00 GiB, 10.00 GiB "
            "are free; use --chunk 64 (the batch in pieces) or --batch 64");
  EXPECT_EQ(fitting_advice(need, kGiB, 128, 128, MemoryOf::kMachine),
            "this machine's memory is too small: a single image needs 2.12 GiB, 1.00 GiB are free; "
            "end what else runs here, raise the limit of this program (ulimit -v, a container's), "
            "or take a smaller network or image");
}

}  // namespace
}  // namespace rk
