// Work on a context's device that is done again and again. On a GPU it is captured when it comes
// for the second time with the same sizes, and replayed from then on: a replay computes the bits
// that the same kernels compute started one by one. On the CPU it is simply done.
#pragma once

#include "engine/device/context.h"
#include "engine/device/cuda/graph.h"

#include <cstdint>
#include <functional>
#include <memory>

namespace rk {

class CapturedWork {
 public:
  // captures: whether it shall be, and so as long as it can be.
  CapturedWork(const Context& context, bool captures, std::function<void()> work);

  // sizes: one number for all that the work depends on beside what lies in memory. Work of new ones
  // loads kernels, which must not happen in a capture.
  void run(std::int64_t sizes);
  bool captured() const { return graph_ != nullptr; }  // whether the last run was a replay

 private:
  void capture();

  const Context& context_;
  bool captures_;
  std::function<void()> work_;
  std::int64_t ran_with_ = -1;  // sizes of the last run that was not a replay; -1: there was none
  std::unique_ptr<CudaGraph> graph_;
};

}  // namespace rk
