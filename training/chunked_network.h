// A network on a batch that may be larger than what it sees at a time, on either device. embed()
// sends chunk after chunk forward and keeps nothing but the embeddings; backward() sends each
// forward a second time and then back with its rows of dLoss/dembeddings, and adds the gradients up
// in order. The statistics of batch norm move in the first pass alone. A batch of one chunk goes
// forward once; if no other process has a share of it, its embeddings stay where the network puts
// them.
//
// Neither call allocates; on a GPU they put work on the stream and do not wait.
#pragma once

#include "engine/tape/program.h"
#include "training/batch_parts.h"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace rk {

class ChunkedNetwork {
 public:
  // fill(chunk): that chunk of this process's pictures into the program. network_elements: of the
  // flat buffers, from the beginning.
  ChunkedNetwork(Program& program, TensorId embeddings, const BatchParts& parts,
                 std::int64_t network_elements, std::function<void(std::int64_t)> fill);

  // [batch, dim] of all processes; this one writes the embeddings, and reads the gradients, of its
  // own share.
  float* embeddings() const { return embeddings_; }
  float* gradients() const { return gradients_; }
  std::span<float> share() const {
    return {embeddings_ + parts_.share_begin(dim_),
            static_cast<std::size_t>(parts_.share() * dim_)};
  }

  void embed();
  // back: program.backward(), or what does the same.
  void backward(const std::function<void()>& back);

  std::size_t bytes() const;

 private:
  void back_with(std::int64_t chunk, const std::function<void()>& back);
  void add_up(std::int64_t chunk);

  Program& program_;
  TensorId tensor_;
  BatchParts parts_;
  std::int64_t dim_;
  std::int64_t network_elements_;
  std::function<void(std::int64_t)> fill_;
  float* embeddings_;  // the program's own where the batch is in one piece, else in rows_
  float* gradients_;
  Memory rows_, row_gradients_;
  // Of several chunks: the sum of the network's gradients so far, and what batch norm had counted
  // before the second pass.
  Memory sums_, statistics_;
  std::vector<std::int64_t> counters_;
};

}  // namespace rk
