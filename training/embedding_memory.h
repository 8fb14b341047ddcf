// The embeddings of the last batches as additional columns of the loss (Rolinek et al. 2020,
// section 4.3): a ring of T batches with labels and image ids. They get no gradient, and the
// loss leaves out a query's own image by its identity. Empty at first, so that the first T steps of
// a run see fewer columns.
#pragma once

#include "engine/device/context.h"
#include "losses/frame/loss.h"
#include "weights/checkpoint.h"

#include <cstdint>
#include <span>
#include <vector>

namespace rk {

class EmbeddingMemory {
 public:
  // The embeddings are stored on the context's device. batches 0: it stores nothing.
  EmbeddingMemory(const Context& context, std::int64_t batches, std::int64_t batch,
                  std::int64_t dim);

  std::int64_t capacity() const { return static_cast<std::int64_t>(labels_.size()); }  // rows
  std::int64_t rows() const { return rows_; }  // rows in use

  void show(LossInput<float>& input) const;
  // Replaces the oldest batch by this one, [batch, dim] in the same device's memory. Allocates
  // nothing; on a GPU the copy is made in stream order.
  void push(const float* embeddings, std::span<const std::int64_t> labels,
            std::span<const std::int64_t> image_ids);

  void save(CheckpointWriter& writer) const;
  // Restores what a ring of the same size saved. Returns false, leaving the ring empty, if the size
  // differs.
  bool load(const Checkpoint& checkpoint);

  std::size_t bytes() const;

 private:
  std::int64_t batch_ = 0;
  std::int64_t dim_ = 0;
  std::int64_t rows_ = 0;
  std::int64_t next_ = 0;  // the row where the next batch is written
  const Context& context_;
  Memory embeddings_;  // [capacity, dim]
  std::vector<std::int64_t> labels_, image_ids_;
};

}  // namespace rk
