#include "training/embedding_memory.h"

#include "tests/support/temporary_folder.h"
#include "weights/atomic_file.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>

namespace rk {
namespace {

constexpr std::int64_t kBatch = 2, kDim = 3;

// The batch with a given number: its rows depend on the number alone.
struct Rows {
  std::vector<float> embeddings;
  std::vector<std::int64_t> labels, image_ids;
  explicit Rows(std::int64_t number) {
    for (std::int64_t r = 0; r < kBatch; ++r) {
      labels.push_back(10 * number + r);
      image_ids.push_back(100 * number + r);
      for (std::int64_t k = 0; k < kDim; ++k) {
        embeddings.push_back(static_cast<float>(1000 * number + 10 * r + k));
      }
    }
  }
};

void push(EmbeddingMemory& memory, std::int64_t number) {
  const Rows rows(number);
  memory.push(rows.embeddings.data(), rows.labels, rows.image_ids);
}

using Columns = std::map<std::int64_t, std::pair<std::int64_t, std::vector<float>>>;

// By identity: label and embedding.
Columns shown(const EmbeddingMemory& memory) {
  LossInput<float> input;
  memory.show(input);
  Columns columns;
  for (std::int64_t m = 0; m < input.memory; ++m) {
    const float* row = input.memory_embeddings + m * kDim;
    columns[input.memory_image_ids[m]] = {input.memory_labels[m], {row, row + kDim}};
  }
  EXPECT_EQ(static_cast<std::int64_t>(columns.size()), input.memory);
  return columns;
}

Columns of(const std::deque<std::int64_t>& numbers) {
  Columns columns;
  for (const std::int64_t number : numbers) {
    const Rows rows(number);
    for (std::size_t r = 0; r < kBatch; ++r) {
      const auto from = rows.embeddings.begin() + static_cast<std::ptrdiff_t>(r * kDim);
      columns[rows.image_ids[r]] = {rows.labels[r], {from, from + kDim}};
    }
  }
  return columns;
}

TEST(EmbeddingMemory, HoldsTheLastBatches) {
  const Context context(1);
  EmbeddingMemory memory(context, 3, kBatch, kDim);
  EXPECT_EQ(memory.capacity(), 6);
  std::deque<std::int64_t> last;
  for (std::int64_t number = 1; number <= 10; ++number) {
    EXPECT_EQ(shown(memory), of(last)) << "before batch " << number;
    push(memory, number);
    last.push_back(number);
    if (last.size() > 3) last.pop_front();
  }
}

TEST(EmbeddingMemory, NoneKeepsNothing) {
  const Context context(1);
  EmbeddingMemory none(context, 0, kBatch, kDim);
  push(none, 1);
  EXPECT_EQ(none.bytes(), 0U);
  LossInput<float> input;
  none.show(input);
  EXPECT_EQ(input.memory, 0);
}

class StoredMemory : public testing::Test {
 protected:
  Checkpoint stored(const EmbeddingMemory& memory) const {
    CheckpointWriter writer(ModelDescription{}, RunState{});
    memory.save(writer);
    const std::string path = folder_.in("memory.h5");
    write_atomic(path, writer.finish());
    return Checkpoint(path);
  }
  const Context context_{1};
  const TemporaryFolder folder_;
};

// Saved after any number of batches, the loaded memory must show the same rows and forget them in
// the same order.
TEST_F(StoredMemory, GoesOnAsIfNothingHadBeen) {
  for (std::int64_t before = 0; before <= 7; ++before) {
    EmbeddingMemory memory(context_, 3, kBatch, kDim), other(context_, 3, kBatch, kDim);
    for (std::int64_t number = 1; number <= before; ++number) push(memory, number);
    push(other, 99);  // load() must forget this
    EXPECT_EQ(other.load(stored(memory)), before > 0);
    for (std::int64_t number = 11; number <= 14; ++number) {
      EXPECT_EQ(shown(other), shown(memory)) << before << " batches, then " << number;
      push(memory, number);
      push(other, number);
    }
  }
}

// A memory of as many rows in batches of another size continues only if its oldest row begins a
// batch of that size.
TEST_F(StoredMemory, BatchesOfAnotherSizeGoOnFromTheOldestRow) {
  EmbeddingMemory memory(context_, 4, kBatch, kDim), coarse(context_, 2, 2 * kBatch, kDim);
  for (std::int64_t number = 1; number <= 5; ++number) push(memory, number);
  EXPECT_FALSE(coarse.load(stored(memory))) << "the oldest row lies within a batch of four";
  push(memory, 6);
  ASSERT_TRUE(coarse.load(stored(memory)));
  const Rows seven(7), eight(8);
  std::vector<float> embeddings = seven.embeddings;
  embeddings.insert(embeddings.end(), eight.embeddings.begin(), eight.embeddings.end());
  std::vector<std::int64_t> labels = seven.labels, image_ids = seven.image_ids;
  labels.insert(labels.end(), eight.labels.begin(), eight.labels.end());
  image_ids.insert(image_ids.end(), eight.image_ids.begin(), eight.image_ids.end());
  coarse.push(embeddings.data(), labels, image_ids);
  EXPECT_EQ(shown(coarse), of({5, 6, 7, 8}));
}

// Batches behind part of one would end beyond the last row.
TEST_F(StoredMemory, PartOfABatchDoesNotFit) {
  EmbeddingMemory memory(context_, 4, kBatch, kDim), coarse(context_, 2, 2 * kBatch, kDim);
  for (std::int64_t number = 1; number <= 3; ++number) {
    push(memory, number);
    EXPECT_EQ(coarse.load(stored(memory)), number == 2) << number;
    EXPECT_EQ(coarse.rows(), number == 2 ? 2 * kBatch : 0) << number;
  }
}

TEST_F(StoredMemory, ALargerOneDoesNotFit) {
  EmbeddingMemory memory(context_, 3, kBatch, kDim), smaller(context_, 2, kBatch, kDim),
      larger(context_, 4, kBatch, kDim);
  for (std::int64_t number = 1; number <= 4; ++number) push(memory, number);
  const Checkpoint checkpoint = stored(memory);
  EXPECT_FALSE(smaller.load(checkpoint));
  EXPECT_EQ(smaller.rows(), 0);
  EXPECT_FALSE(larger.load(checkpoint)) << "which of three full places is the oldest?";
  EXPECT_EQ(larger.rows(), 0);
}

}  // namespace
}  // namespace rk
