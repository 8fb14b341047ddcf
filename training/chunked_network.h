// A network on a batch that may be larger than what it sees at a time, and that several processes
// may share, on either device. embed() sends chunk after chunk forward, keeps nothing but the
// embeddings and brings everybody's together; backward() sends each chunk forward a second time and
// then back with its rows of dLoss/dembeddings, adds the gradients up in order, and then over the
// processes. The statistics of batch norm move in the first pass alone; they become the mean over
// the processes. A batch of one chunk goes forward once; if no other process has a share of it, its
// embeddings stay where the network puts them.
//
// Neither call allocates; on a GPU they put work on the stream and do not wait.
#pragma once

#include "engine/group/device_group.h"
#include "engine/tape/program.h"
#include "training/batch_parts.h"
#include "training/network_input.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace rk {

class ChunkedNetwork {
 public:
  // input: with this process's share of the batch. network_elements: of the flat buffers, from the
  // beginning; what lies behind is the same for everybody already.
  ChunkedNetwork(Program& program, TensorId embeddings, const BatchParts& parts,
                 ProcessGroup& processes, std::int64_t network_elements, NetworkInput& input,
                 bool shares_statistics);

  // [batch, dim] of all processes; this one reads the gradients of its own share.
  float* embeddings() const { return embeddings_; }
  float* gradients() const { return gradients_; }

  void embed();
  void backward();

  std::size_t bytes() const;

 private:
  std::span<float> share() const {
    return {embeddings_ + parts_.share_begin(dim_),
            static_cast<std::size_t>(parts_.share() * dim_)};
  }
  void gather();
  void take_gradients(std::int64_t chunk);
  void add_up(std::int64_t chunk);
  void sum_while_going_back();

  Program& program_;
  TensorId tensor_;
  BatchParts parts_;
  std::int64_t dim_;
  std::int64_t network_elements_;
  NetworkInput& input_;
  bool shares_statistics_;
  std::unique_ptr<DeviceGroup> group_;
  float* embeddings_;  // the program's own where the batch is in one piece, else in rows_
  float* gradients_;
  Memory rows_, row_gradients_;
  Memory per_process_;  // 1 / processes
  // Of several chunks: the sum of the network's gradients so far, and what batch norm had counted
  // before the second pass.
  Memory sums_, statistics_;
  std::vector<std::int64_t> counters_;
};

}  // namespace rk
