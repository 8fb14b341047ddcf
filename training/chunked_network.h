// Runs a network on a batch that may be larger than the network's own, and that several processes
// may share, on either device. embed() sends chunk after chunk forward, keeps nothing but the
// embeddings and gathers those of all processes; backward() sends the chunks backward with their
// rows of dLoss/dembeddings, from the last one, which the network still holds, to the first, each
// of the others after it went forward a second time. It sums the gradients over the chunks, in this
// order, and then over the processes. Only the first pass updates batch norm's statistics, which
// then become their mean over the processes. In a batch of one chunk in one process, the embeddings
// stay where the network writes them.
//
// After embed(), the network must not compute anything else before backward().
//
// Neither call allocates; on a GPU both put work on the stream and do not wait.
#pragma once

#include "engine/group/device_group.h"
#include "engine/tape/program.h"
#include "training/batch_parts.h"
#include "training/network_input.h"

#include <cstdint>
#include <memory>
#include <span>

namespace rk {

class ChunkedNetwork {
 public:
  // input: stages this process's share of the batch. network_elements: the length of the network's
  // part at the start of the flat buffers; what lies after it (proxies) is already the same in all
  // processes.
  ChunkedNetwork(Program& program, TensorId embeddings, const BatchParts& parts,
                 ProcessGroup& processes, std::int64_t network_elements, NetworkInput& input,
                 bool shares_statistics);

  // [batch, dim] of all processes; backward() reads the gradients of this process's share only.
  float* embeddings() const { return embeddings_; }
  float* gradients() const { return gradients_; }

  void embed();
  void backward();

  void renew_group() { group_->renew(); }  // DeviceGroup::renew()

  std::size_t bytes() const;

 private:
  std::span<float> share() const {
    return {embeddings_ + parts_.share_begin(dim_),
            static_cast<std::size_t>(parts_.share() * dim_)};
  }
  void gather();
  void take_gradients(std::int64_t chunk);
  void add_up(std::int64_t chunk);
  void backward_with_all_reduce();

  Program& program_;
  TensorId tensor_;
  BatchParts parts_;
  std::int64_t dim_;
  std::int64_t network_elements_;
  NetworkInput& input_;
  bool shares_statistics_;
  std::unique_ptr<DeviceGroup> group_;
  float* embeddings_;  // the program's own if the batch is in one piece, else in rows_
  float* gradients_;
  Memory rows_, row_gradients_;
  Memory per_process_;  // 1 / processes
  // With several chunks: the sum of the network's gradients so far, and batch norm's statistics as
  // they were before the second pass.
  Memory sums_, statistics_;
};

}  // namespace rk
