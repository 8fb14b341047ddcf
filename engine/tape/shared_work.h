// Work done once for many nodes of a program.
#pragma once

#include <cstddef>

namespace rk {

// Work that many nodes share, because on a GPU it would cost each node little but a launch: before
// a forward pass, or after backward. Its memory is reserved for the whole step (before forward) or
// from the start of backward (after backward) to the end of the step. Nodes add to the work in
// their plan(), and get their places in their bind().
class SharedWork {
 public:
  virtual ~SharedWork() = default;
  virtual void node_planned() = 0;      // called after each node's plan(), in node order
  virtual std::size_t plan() = 0;       // called after all nodes' plan(); returns bytes of memory
                                        // needed
  virtual void bind(void* memory) = 0;  // called before the nodes' bind()
  virtual void nodes_bound() = 0;
  virtual void run(int first, int end) = 0;  // does what nodes [first, end) added
};

}  // namespace rk
