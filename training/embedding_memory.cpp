#include "training/embedding_memory.h"

#include "engine/base/error.h"

#include <algorithm>

namespace rk {

EmbeddingMemory::EmbeddingMemory(const Context& context, std::int64_t batches, std::int64_t batch,
                                 std::int64_t dim)
    : batch_(batch),
      dim_(dim),
      context_(context),
      embeddings_(context.allocate<float>(batches * batch * dim)),
      labels_(static_cast<std::size_t>(batches * batch)),
      image_ids_(labels_.size()) {}

void EmbeddingMemory::show(LossInput<float>& input) const {
  input.memory = rows_;
  input.memory_embeddings = embeddings_.as<float>();
  input.memory_labels = labels_.data();
  input.memory_image_ids = image_ids_.data();
}

void EmbeddingMemory::push(const float* embeddings, std::span<const std::int64_t> labels,
                           std::span<const std::int64_t> image_ids) {
  if (capacity() == 0) return;
  expect(static_cast<std::int64_t>(labels.size()) == batch_ && image_ids.size() == labels.size(),
         "[memory] expected a batch of {}, got {} labels and {} image ids", batch_, labels.size(),
         image_ids.size());
  context_.copy(embeddings_.as<float>() + next_ * dim_, embeddings,
                static_cast<std::size_t>(batch_ * dim_) * sizeof(float));
  std::copy(labels.begin(), labels.end(), labels_.begin() + next_);
  std::copy(image_ids.begin(), image_ids.end(), image_ids_.begin() + next_);
  rows_ = std::max(rows_, next_ + batch_);
  next_ = (next_ + batch_) % capacity();
}

void EmbeddingMemory::save(CheckpointWriter& writer) const {
  if (rows_ == 0) return;
  const auto rows = static_cast<std::size_t>(rows_);
  std::vector<float> embeddings(rows * static_cast<std::size_t>(dim_));
  embeddings_.download(embeddings.data(), embeddings.size() * sizeof(float));
  writer.memory({.dim = dim_,
                 .next = next_,
                 .embeddings = embeddings,
                 .labels = std::span(labels_).first(rows),
                 .image_ids = std::span(image_ids_).first(rows)});
}

bool EmbeddingMemory::load(const Checkpoint& checkpoint) {
  rows_ = next_ = 0;
  if (capacity() == 0) return true;
  const std::int64_t rows = checkpoint.memory_rows();
  if (rows == 0 || rows > capacity() || rows % batch_ != 0) return false;
  std::vector<float> embeddings(static_cast<std::size_t>(rows * dim_));
  const std::int64_t next =
      checkpoint.memory(dim_, embeddings.data(), labels_.data(), image_ids_.data());
  // A full ring continues at the beginning of a batch; one that is still filling, after its last
  // row.
  const bool fits =
      rows == capacity() ? next >= 0 && next < rows && next % batch_ == 0 : next == rows;
  if (!fits) return false;
  embeddings_.upload(embeddings.data(), embeddings.size() * sizeof(float));
  rows_ = rows;
  next_ = next;
  return true;
}

std::size_t EmbeddingMemory::bytes() const {
  return embeddings_.bytes() + 2 * labels_.size() * sizeof(std::int64_t);
}

}  // namespace rk
