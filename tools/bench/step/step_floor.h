// What `bench step` sets beside a step on the CPU: the same convolutions and matrix products alone.
#pragma once

#include "training/trainer.h"

#include <vector>

namespace rk {

class StepFloor {
 public:
  explicit StepFloor(Trainer& trainer);

  // Does a step of a batch, node by node, and returns the milliseconds of the nodes' library
  // primitives. These are repeated right after their node, on its real values (wrong ones could be
  // denormals, which are many times slower) and with inputs as warm in the cache as they can be.
  double pass();

  // Prints where the time of a step goes: the medians of all passes, summed by kind of node, and
  // with `nodes` those of every node.
  void print_table(bool nodes) const;

 private:
  // Milliseconds of a node, and of only its library primitives, in each pass.
  struct NodeTimes {
    std::vector<double> forward, forward_floor, backward, backward_floor;
  };

  TrainStep& step_;
  const Program& program_;
  std::vector<NodeTimes> nodes_;
  std::vector<double> losses_, updates_;
};

}  // namespace rk
