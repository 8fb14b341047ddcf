// Work done once for many nodes of a program.
#pragma once

#include "engine/device/carver.h"

namespace rk {

// Work that many nodes share, because on a GPU it would cost each node little but a launch: before
// a forward pass, or after backward. Its memory is reserved for the whole step (before forward) or
// from the start of backward (after backward) to the end of the step. Nodes add to the work in
// their plan(), and get their places in their bind().
class SharedWork {
 public:
  virtual ~SharedWork() = default;
  virtual void node_planned() = 0;  // called after each node's plan(), in node order
  // Called after all nodes' plan() without memory, which tells how much is needed, and with it
  // before the nodes' bind().
  virtual void carve(Carver& memory) = 0;
  virtual void nodes_bound() = 0;
  virtual void run(int first, int end) = 0;  // does what nodes [first, end) added
};

}  // namespace rk
