// The memory of a step, planned from what was recorded: how long every value, every gradient and
// every node's own memory is needed over forward and backward, which gradients take the place of
// others, and at which offset of one arena each of them lies.
//
// Node i is at time i in forward and 2 * count - i in backward; the loss is in between, at `count`.
//
// In backward the first writer of a gradient overwrites it; later ones, e.g. a residual branch, add
// to it. A gradient takes the place of the output's where its node allows that
// (NodeInput::gradient_in_place). If a ReLU accepts a masked gradient, the last writer of that
// gradient masks it.
#pragma once

#include "engine/base/integers.h"
#include "engine/tape/arena.h"
#include "engine/tape/node.h"
#include "engine/tape/tape.h"

#include <cstddef>
#include <vector>

namespace rk {

using StorageId = int;  // one piece of memory; -1: none

class StoragePlan {
 public:
  struct TensorStorage {
    StorageId value = -1;
    StorageId gradient = -1;       // -1: not wanted
    StorageId gradient_sums = -1;  // over each channel; -1: nobody writes them
    bool gradient_masked = false;
  };
  // How a node's backward writes the gradient of one of its inputs.
  struct EdgeStorage {
    bool accumulate = false;
    bool mask = false;
    StorageId gradient = -1;  // that it writes; -1: not wanted
    StorageId others = -1;    // the other readers' sum, which it adds
    StorageId sums = -1;      // the channel sums it writes
    EdgeUse use() const { return {gradient >= 0, accumulate, mask, sums >= 0}; }
  };

  StoragePlan() = default;
  // Values, and gradients if these are to be computed. keep_all: nothing shares memory.
  StoragePlan(const Tape& tape, bool gradients, bool keep_all);

  const TensorStorage& of(TensorId id) const { return tensors_[at(id)]; }
  const std::vector<EdgeStorage>& edges_of(int node) const { return edges_[at(node)]; }
  int backward_time(int node) const { return end() - node; }
  int end() const { return 2 * static_cast<int>(edges_.size()); }
  // Memory that is not a tensor's: nodes' own and what they share.
  StorageId add(const Lifetime& life);
  // Gives every storage its offset. Nothing can be added afterwards.
  void place();

  // By StorageId.
  const std::vector<Lifetime>& lifetimes() const { return lifetimes_; }
  // Valid from place() on.
  std::size_t offset(StorageId id) const { return offsets_[at(id)]; }
  std::size_t bytes() const { return bytes_; }

 private:
  TensorStorage& planned(TensorId id) { return tensors_[at(id)]; }
  void plan_values(const Tape& tape);
  void plan_gradients(const Tape& tape);
  void plan_masks(const Tape& tape);
  void extend(StorageId storage, int time);

  bool keep_all_ = false;
  std::vector<TensorStorage> tensors_;
  std::vector<std::vector<EdgeStorage>> edges_;  // by node
  std::vector<Lifetime> lifetimes_;
  std::vector<std::size_t> offsets_;
  std::size_t bytes_ = 0;
};

}  // namespace rk
